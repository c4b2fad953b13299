#!/usr/bin/env python3
"""The site builds, holds each page on its shelf, and no link in it is dead. 77: the packages that build it are missing."""
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SCRIPT = os.path.join(ROOT, "scripts", "make_site")
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("make_site", SCRIPT)
make_site = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_site", LOADER))
LOADER.exec_module(make_site)


class Made(unittest.TestCase):
    """On made-up pages: these need no packages."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, path, text):
        make_site.write(os.path.join(self.folder, path), text)

    def test_each_page_of_this_checkout_is_on_one_shelf(self):
        make_site.check_shelves()
        self.assertEqual(["Start", "Use", "Run", "Inside"], list(make_site.shelves())[:4])

    def test_a_page_without_a_shelf_is_named(self):
        self.write("docs/README.md", "## Start\n- [A](a.md): a\n")
        self.write("docs/a.md", "# A\n")
        self.write("docs/b.md", "# B\n")
        before, make_site.ROOT = make_site.ROOT, self.folder
        self.addCleanup(setattr, make_site, "ROOT", before)
        with self.assertRaisesRegex(SystemExit, "docs/b.md is on no shelf"):
            make_site.check_shelves()

    def test_dead_links_are_found(self):
        self.write("a.html", '<h1 id="top">A</h1><a href="b/c.html#there">x</a><a href="#top">x</a><a href="https://kolo">x</a>')
        self.write("b/c.html", '<p id="there"><a href="../a.html">x</a><a href="../gone.html">x</a><a href="../a.html#gone">x</a>'
                               '<img src="gone.png">')
        self.write("style.css", "@import url(/from/the/root.css); p { background: url('b/c.html') }")
        dead, pages = make_site.dead_links(self.folder)
        self.assertEqual(pages, 2)
        self.assertEqual(dead, [f"b/c.html: {link}" for link in ("../a.html#gone", "../gone.html", "gone.png")] +
                         ["style.css: /from/the/root.css"])

    def test_an_example_of_what_a_header_does_not_declare_is_refused(self):
        text = "/// Adds.\nint add(int a);\n"
        self.assertEqual("/// Adds.\n///\n/// @par Example\n/// @code{.cpp}\n/// add(1);\n/// @endcode\nint add(int a);\n",
                         make_site.with_examples(text, [("add", "  add(1);\n")]))
        with self.assertRaisesRegex(SystemExit, "an example of sub, which its header does not declare"):
            make_site.with_examples(text, [("sub", "sub(1);")])

    def test_doxygen_sees_every_comment_of_a_header(self):
        header = """// Head.
#pragma once
namespace kolo {
/// Both.
int add(int a);
int sub(int a);
template <typename T>
T sub(T a);

// A heading.

namespace detail {
int mul(int a);
}  // namespace detail

struct Options {
  int a = 1;  // of a
  // Of b.
  int b = 2;
  int get() const {
    // No comment for users.
    return a;
  }
};
}
"""
        self.assertEqual(make_site.for_doxygen(header, "kolo/x.h"), """/// @file kolo/x.h
/// Head.
#pragma once
namespace kolo {
/// Both.
int add(int a);
/// Both.
int sub(int a);
/// Both.
template <typename T>
T sub(T a);


namespace detail {
int mul(int a);
}  // namespace detail

struct Options {
  int a = 1;  ///< of a
  /// Of b.
  int b = 2;
  int get() const {
    // No comment for users.
    return a;
  }
};
}
""")


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        done = subprocess.run([SCRIPT, folder.name], capture_output=True, text=True, timeout=280, check=False)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        cls.said = done.stdout
        cls.folder = os.path.join(folder.name, make_site.version())

    def test_no_link_is_dead(self):
        self.assertRegex(self.said, r"[1-9]\d\d+ pages, 0 dead links")

    def test_the_version_is_in_title_and_list(self):
        version = make_site.version()
        self.assertIn(f"kolo {version}</title>", make_site.read(os.path.join(self.folder, "tutorial.html")))
        self.assertIn(f'"{version}/index.html"', make_site.read(os.path.join(self.folder, "..", "index.html")))

    def test_each_shelf_leads_to_its_pages(self):
        index = make_site.read(os.path.join(self.folder, "index.html"))
        sidebar = index[index.index("sidebar-tree"):]
        for shelf, pages in make_site.shelves().items():
            self.assertIn(f'<span class="caption-text">{shelf}</span>', sidebar)
            for title, path in pages:
                name = make_site.NAMES.get(path, os.path.basename(path)[:-len(".md")].lower()) + ".html"
                with self.subTest(page=path):
                    self.assertRegex(sidebar, rf'href="{name}">{re.escape(title)}<')
                    self.assertTrue(os.path.exists(os.path.join(self.folder, name)))

    def test_the_api_has_a_page_for_each_public_header_with_its_comments(self):
        api = make_site.read(os.path.join(self.folder, "api.html"))
        for path in make_site.public_headers():
            self.assertIn(f"<strong>{os.path.basename(path)}</strong>", api, path)
        self.assertIn(">DistributedOptimizer<", api)
        page = make_site.read(os.path.join(self.folder, "api", "structkolo_1_1DistributedOptimizerOptions.html"))
        self.assertIn("upper bound of the first bucket", page)

    def test_the_most_used_names_have_an_example_in_the_api(self):
        self.assertEqual(20, sum(len(examples) for examples in make_site.api_examples().values()))
        page = make_site.read(os.path.join(self.folder, "api", "classkolo_1_1Session.html"))
        self.assertIn("Example", page)
        self.assertRegex(re.sub(r"<[^>]*>", "", page), r"session\.run\(global_variables_initializer\(s\)\);")

    def test_python_has_a_page_with_signatures(self):
        page = re.sub(r"<[^>]*>", "", make_site.read(os.path.join(self.folder, "python_api.html")))
        self.assertIn("allreduce(array: np.ndarray, op: str=&#39;average&#39;", page.replace("'", "&#39;"))
        self.assertIn("kolo.torch.DistributedOptimizer", page)
        self.assertIn("kolo.errors.UnavailableError", page)
        self.assertIn("start_timeline(path: str)", page)

    def test_a_notebook_is_a_page_with_what_it_drew(self):
        page = make_site.read(os.path.join(self.folder, "source_python_examples_numpy_ipynb.html"))
        self.assertIn("<polyline", page)
        self.assertNotIn("execution_count", page)

    def test_the_theme_works_without_a_server(self):
        script = make_site.read(os.path.join(self.folder, "_static", "scripts", "furo.js"))
        self.assertNotRegex(script, r"(?m)^import ")
        self.assertIn("theme-toggle", script)
        style = make_site.read(os.path.join(self.folder, "_static", "styles", "furo.css"))
        self.assertIn("prefers-color-scheme: dark", style)


if __name__ == "__main__":
    if any(not os.path.exists(path) for path in make_site.NEEDED):
        if not unittest.main(defaultTest="Made", exit=False).result.wasSuccessful():
            sys.exit(1)
        print("skipped: the site needs packages that are not here; scripts/install_deps.sh --docs installs them")
        sys.exit(77)
    unittest.main()
