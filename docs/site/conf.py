"""The site of the documentation, by Sphinx and MyST; tools/site builds it."""

from pygments.lexers.sql import PostgresLexer

project = "Quiver"
html_title = "Quiver"
copyright = "The Quiver contributors"
extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "README"
html_theme = "furo"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
# anchors as the pages' own links have them
myst_heading_anchors = 4
myst_enable_extensions = ["tasklist"]
# "text" is what psql prints; shell commands have no language
highlight_language = "none"
copybutton_prompt_text = "guide=# "
# psql's commands, such as \\gx, are no SQL
suppress_warnings = ["misc.highlighting_failure"]


def setup(app):
    """Blocks of SQL are PostgreSQL's."""
    app.add_lexer("sql", PostgresLexer)
