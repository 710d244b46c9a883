"""Messages of a run on its pages: by kind, faults first and told at the top."""

import re
from dataclasses import replace

from ascendtile.reports.facts.warned import TITLES, WHAT_IF_TITLE, by_kind, message_json
from ascendtile.reports.html.run_page import run_page
from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.terminal.record_view import run_report
from ascendtile.simulator.messages import KINDS, WHAT_IF, fault, note, time_hint

from ..support.sample_runs import launch, run

WRONG = fault("programs 0 and 1 both store", "k.py:9", (0, 1))
MESSAGES = (note("halo"), time_hint("discrete load", "k.py:3"), WRONG, note("kept"))
FAULTY = run(launches=(launch(warnings=MESSAGES),), value_warnings=(fault("half was written", "k.py:4"),))


def test_kinds_come_in_the_order_of_what_matters_and_each_message_once():
    found = by_kind(FAULTY.warnings)
    assert list(found) == list(KINDS) == list(TITLES)
    assert found["note"] == ["halo", "kept"]
    assert by_kind(()) == {}


def test_the_terminal_page_has_faults_first_and_says_so_at_the_top():
    words = str(FAULTY)
    places = [words.index(text) for text in ("2 faults, see below", *TITLES.values())]
    assert places == sorted(places)
    assert "faults" not in str(run())


def test_the_html_page_begins_with_faults_where_there_are_any():
    page, usual = run_page(FAULTY), run_page(run())
    assert page.summary[0] == "The run has 2 faults: wrong or undefined on the device."
    assert [page.sections[0].title, usual.sections[0].title] == ["Warnings", "Timeline"]
    assert re.findall(r'class="kind-(\w+)"', page.sections[0].body) == list(KINDS)
    assert not any("fault" in text for text in usual.summary)


def test_messages_of_a_record_are_text_and_no_markup():
    odd = "<img src=x onerror=alert(1)>"
    made = replace(run(), value_warnings=(fault(odd, odd),))
    body = run_page(made).sections[0].body
    assert odd not in body
    assert "&lt;img" in body


LACKS = fault(f"{WHAT_IF}the product has no e4m3")


def test_a_what_if_is_no_fault_on_pages_and_has_a_heading_of_its_own():
    one = run(launches=(launch(warnings=(LACKS,)),))
    both = replace(one, value_warnings=(WRONG,))
    for page in (str(one), as_text(run_report(both))):
        assert page.index("1 what-if, see below") < page.index(WHAT_IF_TITLE) < page.index("has no e4m3")
    assert "fault" not in str(one)
    assert (
        str(both).index("1 fault, see below")
        < str(both).index(TITLES["fault"])
        < str(both).index(WHAT_IF_TITLE)
    )
    sections = run_page(both).sections[0].body
    assert re.findall(r'class="kind-([\w-]+)"', sections) == ["fault", "what-if"]
    assert run_page(one).summary[0] == "The run has 1 what-if: no board of this product computes it."
    assert run_page(one).sections[0].title == "Warnings"


def test_records_and_json_keep_a_what_if_among_the_faults():
    one = run(launches=(launch(warnings=(LACKS, WRONG)),))
    assert (one.faults, one.what_ifs) == ((LACKS, WRONG), (LACKS,))
    assert [(m["kind"], m["text"]) for m in map(message_json, one.faults)] == [
        ("fault", LACKS),
        ("fault", WRONG),
    ]
