//! What the tests of this crate share: folders, names, children of the test's own binary.
#![allow(dead_code, reason = "every test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use a2_store_sqlite::*;
use tempfile::TempDir;

/// A folder of its own, and the path of a database in it.
pub(crate) fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::Builder::new().prefix("a2-sqlite-").tempdir().unwrap();
    let path = folder.path().join("a2.db");
    (folder, path)
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// An event of type `t` with this id, for the consumer `c`'s event cursor.
pub(crate) fn event(id: &str) -> NewEvent {
    NewEvent::new("t", &id).unwrap().id(id).unwrap().target(Target::event("c").unwrap())
}

pub(crate) fn append(id: &str) -> Append {
    Append::one(event(id)).unwrap()
}

pub(crate) fn claim(holder: &str) -> ClaimAvailable {
    ClaimAvailable::new(holder, Duration::from_secs(30)).unwrap()
}

/// The ids of the whole log, read in pages.
pub(crate) async fn ids(store: &SqliteStore, session: &SessionId) -> Vec<String> {
    let mut ids = Vec::new();
    let mut after = Index::ZERO;
    loop {
        let page = store.read(session, ReadRange::after(after)).await.unwrap();
        let Some(last) = page.events.last() else { return ids };
        after = last.index;
        ids.extend(page.events.iter().map(|event| event.id.as_str().to_owned()));
    }
}

/// Starts this test binary again, to run one test of it as a child: that one does its work when
/// [`is_child`] says so, and nothing otherwise.
pub(crate) fn child(test: &str, path: &Path, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env("A2_TEST_FILE", path)
        .env("A2_TEST_ROLE", role)
        .stdout(Stdio::null());
    command
}

/// The file and the role of a child; none in the test itself.
pub(crate) fn is_child() -> Option<(PathBuf, String)> {
    let file = std::env::var_os("A2_TEST_FILE")?;
    Some((file.into(), std::env::var("A2_TEST_ROLE").unwrap_or_default()))
}

/// Waits until every child has ended well.
pub(crate) fn all_succeed(children: Vec<Child>) {
    for mut child in children {
        let status = child.wait().unwrap();
        assert!(status.success(), "a child failed: {status}");
    }
}

/// Waits until `holds` does, at most a minute.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Length of the file beside the database, 0 when there is none.
pub(crate) fn length(path: &Path, suffix: &str) -> u64 {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    std::fs::metadata(PathBuf::from(name)).map_or(0, |meta| meta.len())
}
