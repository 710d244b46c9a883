"""Messages of a run on its pages: by kind, faults first and told at the top."""

import re
from dataclasses import replace

from ascendtile.reports.facts.warned import TITLES, by_kind
from ascendtile.reports.html.run_page import run_page
from ascendtile.simulator.messages import KINDS, fault, note, time_hint

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
