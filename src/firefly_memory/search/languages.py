"""What is known of a language: its name in Snowball, its stop words, its months."""

from __future__ import annotations

from functools import cache
from typing import Any

from firefly_memory.errors import ConfigurationError
from firefly_memory.reprs import shown
from firefly_memory.search.stop_words import STOP_WORDS

_STEMMED = """
    arabic armenian basque catalan czech danish dutch english esperanto estonian finnish french german greek hindi
    hungarian indonesian irish italian lithuanian nepali norwegian persian polish portuguese romanian russian serbian
    spanish swedish tamil turkish yiddish
"""

STEMMED = frozenset(_STEMMED.split())
"""The languages whose words Snowball stems."""

UNSTEMMED = "none"
"""For a language without a stemmer, and for texts in many languages: words stay as they are."""


def checked_language(value: Any) -> str:
    """``language`` as an argument: one of Snowball's, or ``none``."""
    if not isinstance(value, str) or value not in {*STEMMED, UNSTEMMED}:
        known = ", ".join(sorted(STEMMED))
        raise ConfigurationError(f"language must be {UNSTEMMED!r} or one of {known}, not {shown(value)}")
    return value


@cache
def stop_words(language: str) -> frozenset[str]:
    """The words that are left out of questions in ``language``; none for a language without a list."""
    return frozenset(STOP_WORDS.get(language, "").split())


def month_name(month: int, language: str) -> str:
    """The month from 1 to 12, in English for a language without a list."""
    return MONTHS.get(language, MONTHS["english"]).split()[month - 1]


MONTHS = {
    "danish": "januar februar marts april maj juni juli august september oktober november december",
    "dutch": "januari februari maart april mei juni juli augustus september oktober november december",
    "english": "January February March April May June July August September October November December",
    "french": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "german": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "italian": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "norwegian": "januar februar mars april mai juni juli august september oktober november desember",
    "portuguese": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "russian": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "swedish": "januari februari mars april maj juni juli augusti september oktober november december",
}
"""As they stand in a date."""
