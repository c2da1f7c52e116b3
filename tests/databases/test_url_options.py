"""Security options in a URL: an option that the driver would ignore is refused before connecting."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from firefly_memory import ConfigurationError, MongoDBStore, connect
from firefly_memory.cli import main
from firefly_memory.transfer.importers.firefly_legacy.sources import Where, legacy_source

PASSWORD = "s3cr" + "3t"  # in two parts: a traceback shows lines of this file


def _legacy(url: str) -> None:
    with legacy_source(url, Where(), timeout=1):
        raise AssertionError("this opened a place of a predecessor")


IGNORED_BY_PYMONGO = [
    ("tls=maybe", "'tls' .* must be 'true' or 'false'"),
    ("tls=yes", "'tls'"),
    ("tls=1", "'tls'"),
    ("TLS=TRUE", "'TLS'"),
    ("ssl=True", "'ssl'"),
    ("tls=", "'tls'"),
    ("tls=true&tls=false", "Duplicate URI option 'tls'"),
    ("tls=true;tlsInsecure=maybe", "'tlsInsecure'"),
    ("tls=true&tlsAllowInvalidCertificates=no", "'tlsAllowInvalidCertificates'"),
    ("authMechanism=bogus", "'authMechanism'"),
    ("authMechanismProperties=AWS_SESSION_TOKEN:s3cr3t,X", "'authMechanismProperties'"),
    ("tlsCertificateKeyFilePassword=s3cr3t&tls=maybe", "'tls'"),
    ("compressors=bogus", "'compressors'"),
    ("retryWriets=true", "'retryWriets' .* Unknown option"),
    ("readConcernLevel=&tlss=true", "'tlss'"),
    ("tlsCAFile=/missing", "'tlsCAFile' .* a file that cannot be read: No such file"),
    ("tls=true&tlsCertificateKeyFile=missing", "'tlsCertificateKeyFile' .* cannot be read"),
    ("tls=true&tlsCRLFile=missing", "'tlsCRLFile' .* cannot be read"),
    ("tls=true&ssl=false", "options that go together"),
]


@pytest.mark.parametrize(("options", "words"), IGNORED_BY_PYMONGO)
@pytest.mark.parametrize("use", [MongoDBStore, connect, _legacy])
def test_an_option_that_pymongo_would_ignore_is_an_error_that_names_it(
    options: str, words: str, use: Callable[[str], object]
) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        use(f"mongodb://user:{PASSWORD}@localhost:1/?{options}")
    shown = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in shown
    assert caught.value.__context__ is None


def test_commands_refuse_such_an_option_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"mongodb://user:{PASSWORD}@localhost:1/?tls=yes"
    for command in (["doctor"], ["db", "check"], ["export", "-"]):
        assert main([*command, "--url", url]) != 0
        said = "".join(capsys.readouterr())
        assert "'tls'" in said
        assert PASSWORD not in said


def test_an_invalid_certificate_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    with pytest.raises(ConfigurationError, match="TLS files that the MongoDB URL names cannot be used"):
        MongoDBStore(f"mongodb://localhost:1/?tls=true&tlsCAFile={file}")


def test_other_warnings_stay_warnings_while_a_client_is_created() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MongoDBStore("mongodb://localhost:1/?tls=true&authSource=admin").close_sync()
        warnings.warn("somebody else's", stacklevel=1)
    assert [str(each.message) for each in caught] == ["somebody else's"]


def test_stores_created_in_several_threads_do_not_change_the_warning_filters() -> None:
    before = list(warnings.filters)

    def make_stores(_: int) -> None:
        for _ in range(15):
            MongoDBStore("mongodb://localhost:1/?tls=true&retryWrites=false").close_sync()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make_stores, range(4)))
    assert warnings.filters == before


@pytest.mark.parametrize(
    "url", [f"mongodb://u:{PASSWORD}?x=y@localhost/", f"mongodb://u:{PASSWORD}@localhost/?a@b=true"]
)
def test_an_option_that_may_be_a_part_of_the_password_is_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="PyMongo can read") as caught:
        connect(url)
    assert PASSWORD not in str(caught.value)
    assert "a@b" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+asyncpg", "postgresql+psycopg"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("sslmode=bogus", "sslmode .* must be one of"),
        ("ssl=maybe", "sslmode .* must be one of"),
        ("sslmode=require&sslmode=disable", "sslmode is in the PostgreSQL URL twice"),
        ("sslmode=require&ssl=disable", "sslmode is in the PostgreSQL URL twice"),
        ("sslmode=require&sslrootcert=/missing", "sslrootcert .* cannot be read"),
        ("sslrootcert=/missing", "sslrootcert .* cannot be read"),
        ("sslmode=verify-full&sslcrl=/missing", "sslcrl .* cannot be read"),
        ("sslmode=require&sslcert=/missing", "sslcert .* cannot be read"),
        ("sslmode=require&sslkey=/missing", "sslkey .* cannot be read"),
        ("sslmode=verify-full&sslcrldir=/missing", "sslcrldir .* cannot be read"),
        ("sslmode%20=require", "is not name=value"),
        ("SSLMODE=require", "'SSLMODE' in the PostgreSQL URL is no parameter"),
        ("nonsense=1", "'nonsense' in the PostgreSQL URL is no parameter"),
    ],
)
def test_an_option_of_tls_that_a_postgresql_driver_would_ignore_is_refused(
    scheme: str, options: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        connect(f"{scheme}://user:{PASSWORD}@localhost:1/d?{options}")
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("option", ["channel_binding=require", "gssencmode=require", "require_auth=none"])
def test_asyncpg_gets_no_unknown_options(option: str) -> None:
    with pytest.raises(ConfigurationError, match=f"asyncpg does not know {option.partition('=')[0]}"):
        connect(f"postgresql+asyncpg://localhost:1/d?{option}")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"postgresql+asyncpg://h/?:{PASSWORD}/d?host=h", "not name=value"),
        (f"postgresql+psycopg://h/?:{PASSWORD}/=1", "not name=value"),
        (f"postgresql://h/?:{PASSWORD}/d?x=1&:{PASSWORD}/d?x=2", "not name=value"),
        (f"mongodb://h/?:{PASSWORD}/d?tls=1", "an option without a proper name"),
    ],
)
def test_text_that_cannot_be_an_option_name_is_not_shown(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        connect(url)
    assert PASSWORD not in repr(caught.value)
    assert caught.value.__context__ is None
