"""L13, long-term memory: what is left of erased people."""

from __future__ import annotations

from functools import partial

from firefly_memory.errors import ErasedError, UnknownRecordError
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.erasure import erase_in, readmit_in
from firefly_memory.testing.rules.knowledge_chunks import somebody
from firefly_memory.testing.rules.long_term_services import service_in


@check("L13", facet=LONG_TERM_LOG)
async def an_erased_person_is_nobody_and_nothing_is_stored_of_them(subject: Subject) -> None:
    ann, merged, bob = f"{somebody()}\x00\ud800", somebody(), somebody()
    async with service_in(subject) as service, service_in(subject) as elsewhere:
        for each in (service, elsewhere):
            for name in (ann, merged, bob):
                await each.get_or_create_user("web", name, name)
                await each.set_fact("k", f"old {name}", scope="user", user_id=f"web:{name}")
                await each.set_fact("k", f"of {name}", scope="user", user_id=f"web:{name}")
        await service.merge_users(f"web:{merged}", f"web:{ann}")
        told = await service.set_fact("told", f"by {ann}", scope="global", user_id=f"web:{ann}")
        corrected = await service.set_fact("corrected", f"by {ann}", scope="global", user_id=f"web:{ann}")
        await service.set_fact("corrected", "by bob", scope="global", user_id=f"web:{bob}")
        everybodys = await service.set_fact("k", "everybody's")
        counted = await erase_in(subject, f"web:{ann}", dry_run=True)
        assert (await service.read_fact(told.id)) == told, "a dry run deletes nothing"
        receipt = await erase_in(subject, f"web:{ann}")
        assert counted.rows == receipt.rows
        for each in (service, elsewhere):
            for name in (ann, merged):
                assert await each.get_user(f"web:{name}") is None
                assert list(await each.get_user_facts(f"web:{name}")) == []
                assert (await each.get_user_context(f"web:{name}"))["is_new"]
                for late in (
                    each.get_or_create_user("web", name),
                    each.set_fact("k", 1, scope="user", user_id=f"web:{name}"),
                    each.set_fact("k", 1, scope="session", session_id="s", user_id=f"web:{name}"),
                ):
                    error = await subject.refuses(ErasedError, late)
                    assert name not in str(error), "the error names nobody"
            assert await each.get_fact("k", user_id=f"web:{bob}") == f"of {bob}"
            assert [each.canonical_id for each in await each.list_users()] == [f"web:{bob}"]
        assert await service.read_fact(told.id) is None
        await subject.refuses(UnknownRecordError, service.history(told.id))
        assert await service.get_fact("corrected") == "by bob"
        assert list(await service.history(corrected.id)) == [], "what ann had said"
        assert await service.read_fact(everybodys.id) == everybodys
        assert await readmit_in(subject, f"web:{ann}")
        new = await service.get_or_create_user("web", ann)
        assert (new.display_name, new.total_conversations) == (None, 0)
        await service.set_fact("k", "new", scope="user", user_id=f"web:{ann}")
        assert await service.get_fact("k", user_id=f"web:{ann}") == "new"
        await readmit_in(subject, f"web:{merged}")


@check("L13", facet=LONG_TERM_LOG)
async def a_refused_fact_does_not_disturb_the_facts_of_others(subject: Subject) -> None:
    async with service_in(subject) as service:
        ann = somebody()
        await erase_in(subject, f"web:{ann}")

        async def write(number: int, person: str) -> bool:
            try:
                await service.set_fact(f"k{number}", number, scope="user", user_id=person)
                await service.set_fact("shared", number)
            except ErasedError:
                return False
            return True

        people = [f"web:{ann}", f"web:{somebody()}"]
        assert (
            await at_once(subject, [partial(write, n, each) for n in range(6) for each in people]) == [False, True] * 6
        )
        assert list(await service.get_user_facts(people[0])) == []
        assert len(await service.get_user_facts(people[1])) == 6
        (shared,) = await service.list_facts()
        assert shared.times_confirmed == 6
        await readmit_in(subject, f"web:{ann}")
