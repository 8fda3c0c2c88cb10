//! Who a server runs as: Postgres and PgBouncer refuse root.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::servers::error::Miss;

/// An ordinary user for a server that root starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct User {
    pub(super) name: &'static str,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl User {
    /// The first of these that there is, when this process is root's; else nobody else is needed.
    pub(in super::super) fn instead_of_root(names: &[&'static str]) -> Result<Option<Self>, Miss> {
        if !is_root() {
            return Ok(None);
        }
        let found = names.iter().find_map(|name| Self::named(name));
        let none = || {
            Miss::NotHad(format!(
                "a server that root starts runs as another user, and there is none called {}",
                names.join(" or ")
            ))
        };
        found.map(Some).ok_or_else(none)
    }

    fn named(name: &'static str) -> Option<Self> {
        Some(Self { name, uid: id("-u", Some(name))?, gid: id("-g", Some(name))? })
    }
}

fn is_root() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(|| id("-u", None) == Some(0))
}

/// What the program `id` says, which knows every place that users may come from.
fn id(option: &str, user: Option<&str>) -> Option<u32> {
    let output = Command::new("id")
        .arg(option)
        .args(user)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let root = User::named("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(User::named("no-such-user-of-a2"), None);
    }
}
