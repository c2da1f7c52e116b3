"""The table of commands. A command is one file in this package and one line here.

:mod:`firefly_memory.cli` says how to add one. The table is read for each ``--help``, so nothing is imported here.
"""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """A command: its function, ``"module:name"`` in this package, and what it does in a few words."""

    where: str
    words: str


COMMANDS = {
    "ls": Line("ls:ls", "list the kinds of rows that a store has, or the rows of one kind"),
    "show": Line("show:show", "show one row with all its fields"),
    "search": Line("search:search", "find the rows of one kind that say most about a question"),
    "rm": Line("rm:rm", "delete rows by their ids, or by what is in their fields"),
    "forget": Line("forget:forget", "erase a person: delete everything of an owner, and refuse what comes later"),
    "readmit": Line("readmit:readmit", "accept new data of a person who was erased"),
    "prune": Line("prune:prune", "delete conversations that are too old, or too many"),
    "stats": Line("stats:stats", "count the rows of each kind"),
    "export": Line("export:export", "write all entries and conversations to a file of JSON Lines"),
    "import": Line("import_archive:import_archive", "save what was exported"),
    "copy": Line("copy:copy", "copy all entries and conversations into a store of any kind"),
    "db upgrade": Line("db_upgrade:upgrade", "run the revisions that are missing"),
    "db downgrade": Line("db_downgrade:downgrade", "undo revisions, with the data in what they made"),
    "db current": Line("db_current:current", "say which revision the database is at"),
    "db history": Line("db_history:history", "list the revisions this version knows"),
    "db check": Line("db_check:check", "compare the database, object by object, with what this version needs"),
    "db sql": Line("db_sql:sql", "print a migration as SQL, for review or for somebody else to run"),
    "db grants": Line("db_grants:grants", "print the rights that the role of a service needs"),
    "db stamp": Line("db_stamp:stamp", "write down a revision without running anything"),
    "db import-legacy": Line("db_import_legacy:import_legacy", "take over what the predecessors of this library wrote"),
    "index status": Line("index_status:status", "compare each index of words with its rows"),
    "index rebuild": Line("index_rebuild:rebuild", "make again what is not right in an index, or change its language"),
    "index enable": Line("index_enable:enable", "switch on an index that an extension of the database makes possible"),
    "index disable": Line("index_disable:disable", "switch such an index off"),
    "index embed": Line("index_embed:embed", "make the vectors that are missing"),
    "index delete-vectors": Line(
        "index_delete_vectors:delete_vectors", "delete the vectors of an embedder that is no longer used"
    ),
    "doctor": Line("doctor:doctor", "look at a store and its surroundings, and say what is wrong"),
    "completion": Line("completion:completion", "print the script that completes commands in your shell"),
}
"""Each command under its name as it is typed; two words for a command in a group."""


class GroupLine(NamedTuple):
    words: str
    description: str


GROUPS = {
    "": GroupLine("", "Look after the memories of agents."),
    "db": GroupLine(
        "bring the schema of a database up to date, check it, print it",
        "The schema of a SQLite or PostgreSQL database, and the indexes of a MongoDB one.",
    ),
    "index": GroupLine(
        "look at the indexes that searches use, and make them again",
        "The indexes of words and vectors that searches use.",
    ),
}
"""The groups of commands; the command ``firefly-memory`` itself has no name here."""
