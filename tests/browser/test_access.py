# SPDX-License-Identifier: MIT
"""axe-core finds nothing that keeps anybody from using the page, in any view."""

import pytest

from selenium.webdriver.common.keys import Keys

RUN = """
const [source, done] = arguments;
if (!window.axe)
    new Function(source).call(window);
axe.run(document, { resultTypes: ["violations"] }).then(({ violations, passes }) => done([
    passes.length, violations.map(({ id, help, nodes }) => [id, help, nodes.length, nodes[0].html.slice(0, 200)])]));"""

# Of the page for each of them: its name, its address, and the keys to press.
VIEWS = [("worker", "#map=1&list=1", ""), ("worker", "#ordered=1&colour=state", ""), ("small", "#lines=1", "s"),
         ("small", "#source=1&line=8", ""), ("stall", "#map=0&from=4200000&to=4800000", ""), ("nginx", "#search=json&inverted=1&zoom=3", ""), ("compare", "", "b?"), ("empty", "", "")]


@pytest.mark.parametrize("width, height, scheme", [(1440, 900, "light"), (1024, 657, "dark"), (390, 844, "light"), (390, 844, "dark")])
def test_axe_has_nothing_to_say(open_page, axe, width, height, scheme):
    found = []
    for name, address, keys in VIEWS:
        page = open_page(name, "page", *(["source"] if "source" in address else []), width=width, height=height, mobile=width < 500, scheme=scheme, address=address)
        if width < 500:
            page.one(".menu").click()
        page.press(*keys)
        passed, violations = page.browser.execute_async_script(RUN, axe)
        assert passed > 10
        found += [(name + address, *violation) for violation in violations]
    page.press(Keys.ESCAPE)
    assert found == []
