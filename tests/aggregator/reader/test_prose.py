"""Descriptions as HTML: nothing of theirs is markup."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from specmux_tools.web_ui.page_frame import prose


@examples(300)
@given(st.text(alphabet=st.sampled_from("<>&\"'`=/:. ahtpsjvcripx\n{}%\u2028\x00"), max_size=80))
def test_prose_has_no_markup_but_its_own(text: str) -> None:
    made = prose(text)
    for own in ("<p>", "</p>", "<code>", "</code>", "</a>", ' rel="noopener noreferrer">'):
        made = made.replace(own, "")
    while '<a href="http' in made:
        before, _, rest = made.partition('<a href="http')
        made = before + rest.partition('"')[2]
    assert "<" not in made


def test_text_in_backquotes_is_code() -> None:
    assert prose("Set `a<b` or ``, not `c\nd`.") == "<p>Set <code>a&lt;b</code> or ``, not `c\nd`.</p>"
