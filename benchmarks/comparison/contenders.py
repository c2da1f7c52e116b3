"""Who is compared, in the order of the tables."""

from __future__ import annotations

from benchmarks.comparison import langgraph_savers, openai_sessions, ours, pydantic_ai_stores
from benchmarks.comparison.contender import Contender

CONTENDERS: dict[str, type[Contender]] = {
    each.__name__: each
    for each in (
        ours.OursOnSQLite,
        ours.OurHistoryOnSQLite,
        pydantic_ai_stores.InMemory,
        pydantic_ai_stores.RowsOfTheExample,
        langgraph_savers.SqliteSaver,
        openai_sessions.OfSQLite,
        openai_sessions.OfSQLAlchemyOnSQLite,
        ours.OursOnPostgreSQL,
        ours.OurHistoryOnPostgreSQL,
        langgraph_savers.PostgresSaver,
        openai_sessions.OfSQLAlchemyOnPostgreSQL,
    )
}
