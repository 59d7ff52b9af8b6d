"""Command lines as they are shown: what a secret may be is replaced, and all else stays."""

import pytest

from footprint.process.command_line import command_line


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["psql", "--password=hunter2", "db"], "psql --password=*** db"),
        (["app", "--db-password", "hunter2", "x"], "app --db-password *** x"),
        (["app", "-api-key", "hunter2"], "app -api-key ***"),
        (["env", "PGPASSWORD=hunter2", "A=b"], "env PGPASSWORD=*** A=b"),
        (["java", "-Dspring.password=hunter2", "-jar", "a.jar"], "java -Dspring.password=*** -jar a.jar"),
        (["app", "server=a;user=b;pwd=hunter2;port=1"], "app server=a;user=b;pwd=***;port=1"),
        (["app", '{"token": "hunter2"}'], 'app {"token": ***'),
        (
            ["git", "clone", "https://me:hunter2@host/x?token=hunter2&y=1"],
            "git clone https://me:***@host/x?token=***&y=1",
        ),
        (["curl", "-H", "Authorization: Basic hunter2"], "curl -H Authorization: ***"),
        (["curl", "-H", "X: Bearer hunter2"], "curl -H X: Bearer ***"),
        (["curl", "-u", "me:hunter2", "--user", "me:hunter2"], "curl -u me:*** --user me:***"),
        (["redis", "--TOKEN", "hunter2"], "redis --TOKEN ***"),
        (["worker: password=hunter2 waiting"], "worker: password=*** waiting"),
    ],
)
def test_a_secret_is_replaced(arguments: list[str], shown: str) -> None:
    assert command_line("\0".join([*arguments, ""]).encode()) == shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["app", "--password-file=/etc/secret"],
        ["app", "--token-path", "/run/token"],
        ["app", "--password", "--verbose"],
        ["nginx:", "worker", "process"],
        ["ssh", "git@host", "ssh://git@host:22/x", "-u", "name"],
        ["python3", "-c", "print(a)", ""],
        ["passwd"],
    ],
)
def test_all_else_stays(arguments: list[str]) -> None:
    assert command_line("\0".join([*arguments, ""]).encode()) == " ".join(arguments).rstrip()


@pytest.mark.parametrize("piece", ["a", "a.", "-", "password", "a://", "x:", "=", "authorization:"])
def test_a_long_argument_takes_no_long_time(piece: str) -> None:
    assert command_line((piece * (64 << 10)).encode())


def test_bytes_that_are_no_text_are_kept() -> None:
    assert command_line(b"a\xff\0b\0\0") == "a\udcff b"
