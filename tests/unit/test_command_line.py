"""Command lines as they are shown: what a secret may be is replaced, and all else stays."""

import pytest

from footprint.command_line import (
    command_line,
    command_lines,
    has_command_lines,
    shown_command,
    shown_words,
)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["psql", "--password=hunter2", "db"], "psql --password=*** db"),
        (["app", "--db-password", "hunter2", "x"], "app --db-password *** x"),
        (["app", "-api-key", "hunter2"], "app -api-key ***"),
        (["env", "PGPASSWORD=hunter2", "A=b"], "env PGPASSWORD=*** A=b"),
        (["java", "-Dspring.password=hunter2", "-jar", "a.jar"], "java -Dspring.password=*** -jar a.jar"),
        (["app", "server=a;user=b;pwd=hunter2;port=1"], "app server=a;user=b;pwd=***;port=1"),
        (["app", '{"token": "hunter2"}'], 'app {"token": ***}'),
        (
            ["git", "clone", "https://me:hunter2@host/x?token=hunter2&y=1"],
            "git clone https://me:***@host/x?token=***&y=1",
        ),
        (["curl", "-H", "Authorization: Basic hunter2"], "curl -H Authorization: ***"),
        (["curl", "-H", "X: Bearer hunter2"], "curl -H X: Bearer ***"),
        (["curl", "-u", "me:hunter2", "--user", "me:hunter2"], "curl -u me:*** --user me:***"),
        (["redis", "--TOKEN", "hunter2"], "redis --TOKEN ***"),
        (["worker: password=hunter2 waiting"], "worker: password=*** waiting"),
        (["sh", "-c", "mysql --password hunter2 db"], "sh -c mysql --password *** db"),
        (["sh", "-c", "curl -H 'Authorization: Basic hunter2' url"], "sh -c curl -H 'Authorization: ***' url"),
        (["app", "--password", "hunter2 hunter3"], "app --password ***"),
        (["env", "PGPASSWORD=hunter2 hunter3"], "env PGPASSWORD=***"),
        (["app", "--password=a,hunter2&b"], "app --password=***"),
        (["git", "clone", "https://me:hunter1@hunter2@host/x"], "git clone https://me:***@host/x"),
        (["app", "redis://:hunter2@host"], "app redis://:***@host"),
        (["app", "--pass", "hunter2", "DB_PASS=hunter2"], "app --pass *** DB_PASS=***"),
        (["openssl", "-passin", "pass:hunter2"], "openssl -passin ***"),
        (["mysql", "-phunter2", "-P", "3306", "db"], "mysql -p*** -P 3306 db"),
        (["/usr/bin/sshpass", "-p", "hunter2", "ssh", "-p22"], "/usr/bin/sshpass -p *** ssh -p***"),
        (["sudo", "redis-cli", "-a", "hunter2"], "sudo redis-cli -a ***"),
        (["zip", "-P", "hunter2", "a.zip"], "zip -P *** a.zip"),
        (["kubectl", "create", "--from-literal=password=hunter2"], "kubectl create --from-literal=password=***"),
        (["env", "AWS_SECRET_ACCESS_KEY=hunter2"], "env AWS_SECRET_ACCESS_KEY=***"),
        (["aws", "AKIAIOSFODNN7EXAMPLE"], "aws ***"),
        (["gh", "ghp_0123456789abcdefghijABCDEFGHIJ012345"], "gh ***"),
        (["curl", "--cookie-jar", "x", "-H", "Cookie: id=hunter2"], "curl --cookie-jar x -H Cookie: ***"),
    ],
)
def test_a_secret_is_replaced(arguments: list[str], shown: str) -> None:
    assert command_line("\0".join([*arguments, ""]).encode()) == shown
    # What is read from a file was shown once before.
    assert shown_command(shown) == shown


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
        ["ssh", "-p22", "host"],
        ["mysql", "-p", "db"],
        ["llm", "--max-tokens=4096", "--tokenizer", "x", "--bypass", "y", "--pass-through", "z"],
    ],
)
def test_all_else_stays(arguments: list[str]) -> None:
    assert command_line("\0".join([*arguments, ""]).encode()) == " ".join(arguments).rstrip()


@pytest.mark.parametrize("piece", ["a", "a.", "-", "password", "a://", "x:", "=", "authorization:"])
def test_a_long_argument_takes_no_long_time(piece: str) -> None:
    assert command_line((piece * (64 << 10)).encode())


def test_bytes_that_are_no_text_are_kept() -> None:
    assert command_line(b"a\xff\0b\0\0") == "a\udcff b"


def test_a_command_line_that_an_old_file_holds_loses_its_secrets() -> None:
    assert shown_command("psql --password hunter2 -h db") == "psql --password *** -h db"


def test_the_program_that_the_user_names_is_kept() -> None:
    assert shown_words(["./token=1/app", "--token=hunter2"]) == ("./token=1/app", "--token=***")


def test_without_command_lines_an_answer_holds_the_names_of_programs() -> None:
    with command_lines(is_hidden=True):
        assert command_line(b"app\0argument\0") == ""
        assert shown_command("app argument") == "app"
        assert shown_words(["app", "argument"]) == ("app",)
        assert not has_command_lines()


def test_an_answer_with_a_command_line_is_known_as_such() -> None:
    with command_lines(is_hidden=False):
        assert not has_command_lines()
        command_line(b"app\0")
        assert has_command_lines()
    assert not has_command_lines()
