"""How Sphinx builds the manual. scripts/make_site calls it, with the version, on a copy of the pages."""
project = "kolo"
copyright = "the authors of kolo, Apache-2.0"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_theme_options = {"sidebar_hide_name": False}
html_copy_source = False
html_show_sphinx = False
highlight_language = "none"  # of a listing that names no language
pygments_style = "friendly"
pygments_dark_style = "monokai"
# A listing may show output, or a language that Pygments does not know.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
