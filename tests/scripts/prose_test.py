#!/usr/bin/env python3
"""The pages read as CONTRIBUTING.md's "Sentences" asks: few semicolons, no long sentences, no "What … is" at a start."""
import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "docs/**/*.md"]
# At most so many in 100 sentences of a page, rounded down.
SEMICOLONS, LONG, CLEFT = 3, 1, 2
LONGEST = 40  # words
PIECE = 900   # words between two headings
NOT_PROSE = [r"^```.*?^```", r"^\|.*$", r"^#.*$", r"^    .*$"]  # code, tables, headings


def sentences(page):
    """The running text of a page. Code within it counts as one word, and a link as its text."""
    for pattern in NOT_PROSE:
        page = re.sub(pattern, "", page, flags=re.MULTILINE | re.DOTALL if "`" in pattern else re.MULTILINE)
    page = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", page)
    page = re.sub(r"`[^`]*`", "CODE", page)
    page = re.sub(r"^\s*(?:[-*]|\d+\.)\s", "\n\n", page, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", page):
        yield from (s for s in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*]|kolo)", " ".join(paragraph.split())) if s)


def faults(page):
    """What is over its share, with the sentences: (rule, sentences)."""
    found = list(sentences(page))
    rules = [
        ("semicolon", SEMICOLONS, [s for s in found for _ in range(s.count(";"))]),
        (f"more than {LONGEST} words", LONG, [s for s in found if len(s.split()) > LONGEST]),
        ("starts with What, Who, Where or That", CLEFT, [s for s in found if re.match(r"\**(What|Who|Where|That)\b", s)]),
    ]
    return [(rule, bad) for rule, share, bad in rules if 100 * len(bad) // max(len(found), 1) > share]


class Prose(unittest.TestCase):
    def test_pages_keep_the_rules_of_sentences(self):
        pages = [path for pattern in PAGES for path in glob.glob(os.path.join(ROOT, pattern), recursive=True)]
        self.assertGreater(len(pages), 30)
        for path in sorted(pages):
            with open(path, encoding="utf-8") as file, self.subTest(page=os.path.relpath(path, ROOT)):
                for rule, bad in faults(file.read()):
                    self.fail(f"{len(bad)} × {rule}:\n" + "\n".join(dict.fromkeys(bad)))

    def test_headings_cut_pages_into_pieces(self):
        for path in [path for pattern in PAGES for path in glob.glob(os.path.join(ROOT, pattern), recursive=True)]:
            with open(path, encoding="utf-8") as file, self.subTest(page=os.path.relpath(path, ROOT)):
                for piece in re.split(r"^#+ ", file.read(), flags=re.MULTILINE):
                    self.assertLessEqual(len(piece.split()), PIECE, piece[:80])

    def test_each_rule_finds_its_fault(self):
        self.assertEqual([], faults("The ring adds. `a; b` stays.\n```\nWhat; is\n```\n| What; is | x |\n"))
        self.assertEqual(["semicolon"], [rule for rule, _ in faults("One rank waits; the others do not.")])
        self.assertEqual(["more than 40 words"], [rule for rule, _ in faults("A " + "word " * 40 + "ends.")])
        self.assertEqual([], faults("A " + "word " * 38 + "ends."))
        for start in ["What is missing is named.", "- **Who** waits pays.", "A rank waits. Where it is late it ends."]:
            self.assertEqual(["starts with What, Who, Where or That"], [rule for rule, _ in faults(start)])

    def test_a_sentence_ends_before_kolo_and_inside_a_list(self):
        self.assertEqual(["A rank dies.", "kolo says so."], list(sentences("A rank dies. kolo says so.")))
        self.assertEqual(["One.", "Two."], list(sentences("1. One.\n2. Two.\n")))


if __name__ == "__main__":
    unittest.main()
