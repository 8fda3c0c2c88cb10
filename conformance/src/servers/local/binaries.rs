//! Where a machine keeps the servers' programs: a variable names them, or they are on PATH or where
//! the distributions put them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::servers::error::Miss;

/// The folder that has both programs of a Postgres.
pub(in super::super) fn postgres() -> Result<PathBuf, Miss> {
    let programs = ["initdb", "postgres"];
    if let Some(named) = std::env::var_os("A2_POSTGRES_BIN").map(PathBuf::from) {
        let folder = if named.is_file() { named.parent().map(PathBuf::from) } else { Some(named) };
        return folder.filter(|folder| has_all(folder, &programs)).ok_or_else(|| {
            Miss::failed("A2_POSTGRES_BIN must be a folder that has `initdb` and `postgres`")
        });
    }
    let mut folders = on_path();
    folders.extend(newest_first(Path::new("/usr/lib/postgresql"), "", "bin"));
    folders.extend(newest_first(Path::new("/usr"), "pgsql-", "bin"));
    for homebrew in ["/opt/homebrew/opt", "/usr/local/opt"] {
        folders.extend(newest_first(Path::new(homebrew), "postgresql@", "bin"));
    }
    folders.into_iter().find(|folder| has_all(folder, &programs)).ok_or_else(|| {
        Miss::NotHad(
            "`initdb` and `postgres` are not on PATH, nor in /usr/lib/postgresql/*/bin".to_owned(),
        )
    })
}

/// A Redis or a Valkey.
pub(in super::super) fn redis() -> Result<PathBuf, Miss> {
    program("A2_REDIS_BIN", &["redis-server", "valkey-server"])
}

/// A PgBouncer.
pub(in super::super) fn pgbouncer() -> Result<PathBuf, Miss> {
    program("A2_PGBOUNCER_BIN", &["pgbouncer"])
}

/// The program that the variable names, or the first of these names that is found.
fn program(variable: &str, names: &[&str]) -> Result<PathBuf, Miss> {
    let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
    if let Some(named) = std::env::var_os(variable).map(PathBuf::from) {
        let inside = names.iter().map(|name| named.join(name));
        let found = std::iter::once(named.clone()).chain(inside).find(|file| is_program(file));
        return found.ok_or_else(|| {
            Miss::failed(format!("{variable} must be {listed}, or the folder that has it"))
        });
    }
    let mut folders = on_path();
    let usual = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"];
    folders.extend(usual.map(PathBuf::from));
    let mut files = names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    files.find(|file| is_program(file)).ok_or_else(|| {
        Miss::NotHad(format!("{listed} is not on PATH, nor in {}", usual.join(", ")))
    })
}

fn on_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

fn has_all(folder: &Path, programs: &[&str]) -> bool {
    programs.iter().all(|program| is_program(&folder.join(program)))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// `parent/<prefix><version>/<inside>` of every version, the newest first.
fn newest_first(parent: &Path, prefix: &str, inside: &str) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else { return Vec::new() };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((version, entry.path().join(inside)))
        })
        .collect();
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_comes_first() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["pg-9", "pg-15", "pg-x", "other-16"] {
            std::fs::create_dir(parent.path().join(name)).unwrap();
        }
        let found = newest_first(parent.path(), "pg-", "bin");
        assert_eq!(found, ["pg-15/bin", "pg-9/bin"].map(|path| parent.path().join(path)));
    }

    #[test]
    fn a_program_can_be_executed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("initdb");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(!has_all(folder.path(), &["initdb"]));
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(has_all(folder.path(), &["initdb"]));
        assert!(!has_all(folder.path(), &["initdb", "postgres"]));
    }
}
