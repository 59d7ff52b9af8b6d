"""Command lines as they are shown: what a secret may be is replaced, and all else stays."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footprint.text import command_line as module
from footprint.text.command_line import (
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
        (["wget", "--user=me:hunter2"], "wget --user=me:***"),
        (["curl", "--proxy-user=me:hunter2"], "curl --proxy-user=me:***"),
        (["curl", "-ume:hunter2", "x"], "curl -ume:*** x"),
        (["app", "--password", "-hunter2"], "app --password ***"),
        (["app", "--password=a,hunter=hunter2"], "app --password=***"),
        (["docker", "login", "-u", "me", "-p", "hunter2", "host"], "docker login -u me -p *** host"),
        (["sudo", "podman", "login", "-phunter2"], "sudo podman login -p***"),
        (["htpasswd", "-nb", "me", "hunter2"], "htpasswd -nb me ***"),
        (["htpasswd", "-cbB", "users", "me", "hunter2"], "htpasswd -cbB users me ***"),
        (["redis-server", "--masterauth", "hunter2"], "redis-server --masterauth ***"),
        (["redis-server", "--requirepass", "hunter2"], "redis-server --requirepass ***"),
        (["useradd", "-p", "hunter2", "me"], "useradd -p *** me"),
        (["/usr/sbin/usermod", "-p", "hunter2", "me"], "/usr/sbin/usermod -p *** me"),
        (["openssl", "enc", "-k", "hunter2", "-in", "x"], "openssl enc -k *** -in x"),
        (["openssl", "enc", "-K", "hunter2"], "openssl enc -K ***"),
        (["smbclient", "-U", "me%hunter2", "//host/x"], "smbclient -U me%*** //host/x"),
        (["smbclient", "-Ume%hunter2"], "smbclient -Ume%***"),
        (["git", "clone", "https://hunter2@host/x"], "git clone https://***@host/x"),
        (["curl", "https://host/x?sv=1&sig=hunter2&se=2"], "curl https://host/x?sv=1&sig=***&se=2"),
        (["app", "name=a;AccountKey=hunter2;x=y"], "app name=a;AccountKey=***;x=y"),
        (["app", "--pw", "hunter2"], "app --pw ***"),
        (["app", "--encryption-key", "hunter2"], "app --encryption-key ***"),
        (["app", "--encryption_key=hunter2"], "app --encryption_key=***"),
        (["tailscale", "up", "--auth-key", "hunter2"], "tailscale up --auth-key ***"),
        (["app", "--authkey=hunter2"], "app --authkey=***"),
        (["curl", "--oauth2-bearer", "hunter2", "x"], "curl --oauth2-bearer *** x"),
        (["curl", "--cookie", "id=hunter2", "x"], "curl --cookie *** x"),
        (["erl", "-setcookie", "hunter2", "-name", "x"], "erl -setcookie *** -name x"),
        (["7zz", "a", "-phunter2", "x.7z"], "7zz a -p*** x.7z"),
        (["rar", "a", "-hphunter2", "x.rar"], "rar a -hp*** x.rar"),
        (["ipmitool", "-U", "me", "-P", "hunter2", "power"], "ipmitool -U me -P *** power"),
        (["mosquitto_pub", "-u", "me", "-P", "hunter2"], "mosquitto_pub -u me -P ***"),
        (["cqlsh", "-u", "me", "-p", "hunter2"], "cqlsh -u me -p ***"),
        (["twine", "upload", "-p", "hunter2", "x"], "twine upload -p *** x"),
        (["sh", "-c", "docker login -p hunter2 host"], "sh -c docker login -p *** host"),
        (["app", '{"pwd": "hunter1 \\" hunter2", "a": 1}'], 'app {"pwd": ***, "a": 1}'),
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
        ["docker", "run", "-u", "1000:1000", "-p", "80:80", "image"],
        ["docker", "login", "--password-stdin", "-u", "me"],
        ["ansible-playbook", "--ask-pass", "site.yml"],
        ["psql", "--no-password", "db"],
        ["sqlmap", "-u", "http://host/x"],
        ["openssl", "s_client", "-key", "key.pem"],
        ["htpasswd", "-c", "users", "me"],
        ["wget", "--user=me", "http://host/x:y"],
        ["llm", "--max-tokens=4096", "--tokenizer", "x", "--bypass", "y", "--pass-through", "z"],
    ],
)
def test_all_else_stays(arguments: list[str]) -> None:
    assert command_line("\0".join([*arguments, ""]).encode()) == " ".join(arguments).rstrip()


class CountingPattern:
    """A pattern that counts the characters which it takes."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self.character_count = 0

    def _counted(self, match: re.Match[str] | None, start: int) -> re.Match[str] | None:
        self.character_count += 1 if match is None else match.end() - start
        return match

    def match(self, text: str, start: int) -> re.Match[str] | None:
        return self._counted(self._pattern.match(text, start), start)

    def search(self, text: str, start: int) -> re.Match[str] | None:
        return self._counted(self._pattern.search(text, start), start)


@given(
    st.lists(
        st.sampled_from(["a", "a=", "pwd=", "password", '"', "'", "\\", "&b=", ",", " ", "://", "-", ":", "@", "é"]),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 200),
    st.booleans(),
)
def test_each_character_is_part_of_two_values_at_most(pieces: list[str], count: int, is_argument: bool) -> None:  # noqa: FBT001 # drawn
    text = "".join(pieces) * count
    with pytest.MonkeyPatch.context() as patch:
        patterns = [CountingPattern(getattr(module, name)) for name in ("_QUOTED", "_VALUE_END")]
        patch.setattr(module, "_QUOTED", patterns[0])
        patch.setattr(module, "_VALUE_END", patterns[1])
        assert module.without_secrets_in(text, is_argument=is_argument)
    # The text, and its words once more.
    assert sum(pattern.character_count for pattern in patterns) <= 2 * len(text) + 20


def test_no_more_of_a_command_line_is_read_than_4096_bytes() -> None:
    assert len(command_line(b"a=" * (64 << 10))) == 4096


def test_bytes_that_are_no_text_are_kept() -> None:
    assert command_line(b"a\xff\0b\0\0") == "a\udcff b"


@pytest.mark.parametrize("letters", ["", "\u017f\u212a\u0131\u0130"])
@pytest.mark.parametrize(
    "word",
    [
        *(
            "password",
            "passwd",
            "passphrase",
            "pwd",
            "secret",
            "token",
            "credential",
            "masterauth",
            "cookie",
            "x-bearer",
        ),
        *("apikey", "access_key", "account-key", "privatekey", "encryptionkey", "masterkey", "authkey", "pass", "pw"),
    ],
)
def test_each_secret_word_is_found_however_its_letters_are_written(word: str, letters: str) -> None:
    written = word.translate(dict(zip(map(ord, "skii"), letters, strict=False)))
    for name in (written, written.upper(), f"x_{written}"):
        if module._SECRET.search(name):
            assert module._is_secret(name), name
    assert module._is_secret(word)


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
