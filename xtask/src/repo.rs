//! The repository as git tracks it, held in memory so that rules are functions of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::run;

/// The repository's root: the folder that holds the workspace's manifest.
pub(crate) fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_owned).context("xtask lies in the root of the repository")
}

/// Every tracked file, by its path from the root with `/` between the parts.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    entries: BTreeMap<String, Entry>,
}

/// One tracked file.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A text file with its text.
    Text(String),
    /// A file that is no UTF-8.
    Binary,
    /// A symbolic link with its target.
    Link(String),
}

impl Tree {
    /// What git tracks at `root`, as it stands in the working tree.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let mut ls = Command::new("git");
        let listing = run::output(ls.current_dir(root).args(["ls-files", "--stage", "-z"]))?;
        let mut tree = Self::default();
        for line in listing.split_terminator('\0') {
            let (meta, path) = line.split_once('\t').context("git ls-files: a line has no path")?;
            let on_disk = root.join(path);
            let entry = if meta.starts_with("120000") {
                let target = std::fs::read_link(&on_disk)
                    .with_context(|| format!("{path}: tracked as a link, checked out as none"))?;
                Entry::Link(target.to_string_lossy().replace('\\', "/"))
            } else if let Ok(bytes) = std::fs::read(&on_disk) {
                String::from_utf8(bytes).map_or(Entry::Binary, Entry::Text)
            } else {
                // Deleted, and the deletion is not yet committed.
                continue;
            };
            tree.entries.insert(path.to_owned(), entry);
        }
        Ok(tree)
    }

    /// Every text file with its path.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::Text(text) => Some((path.as_str(), text.as_str())),
            Entry::Binary | Entry::Link(_) => None,
        })
    }

    /// The text files whose name ends so.
    pub(crate) fn with_extension<'a>(
        &'a self,
        extension: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.texts().filter(move |(path, _)| {
            path.rsplit_once('.').is_some_and(|(_, ending)| ending == extension)
        })
    }

    /// Every symbolic link with its target.
    pub(crate) fn links(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::Link(target) => Some((path.as_str(), target.as_str())),
            Entry::Text(_) | Entry::Binary => None,
        })
    }

    /// A file's text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        match self.entries.get(path)? {
            Entry::Text(text) => Some(text),
            Entry::Binary | Entry::Link(_) => None,
        }
    }

    /// Whether a file, a link or a folder of this path is tracked.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.entries.contains_key(path)
            || self
                .entries
                .range(folder.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&folder))
    }

    /// The names of the folders directly in `folder`.
    pub(crate) fn folders_in(&self, folder: &str) -> Vec<&str> {
        let prefix = format!("{folder}/");
        let mut names: Vec<_> = self
            .entries
            .keys()
            .filter_map(|path| path.strip_prefix(&prefix)?.split_once('/').map(|(name, _)| name))
            .collect();
        names.dedup();
        names
    }

    /// For tests: a tree of these text files.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let text = |text: &str| Entry::Text(text.to_owned());
        Self { entries: files.iter().map(|(p, t)| ((*p).to_owned(), text(t))).collect() }
    }

    /// For tests: one more link.
    #[cfg(test)]
    pub(crate) fn and_link(mut self, path: &str, target: &str) -> Self {
        self.entries.insert(path.to_owned(), Entry::Link(target.to_owned()));
        self
    }
}

/// The path that `relative` names when it stands in a file at `from`; none when it leaves the
/// repository or is absolute.
pub(crate) fn resolve(from: &str, relative: &str) -> Option<String> {
    if relative.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A package of the workspace, as `cargo metadata` tells it.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: Option<String>,
    /// Its licence expression.
    pub(crate) license: Option<String>,
    /// Where it is developed.
    pub(crate) repository: Option<String>,
    /// Its read-me file.
    pub(crate) readme: Option<String>,
    /// The oldest compiler that builds it.
    pub(crate) rust_version: Option<String>,
    /// The registries it may go to: none means any, an empty list means it is never published.
    publish: Option<Vec<String>>,
}

impl Package {
    /// Whether the package goes to a registry.
    pub(crate) fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }
}

/// What cargo says of the workspace.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

fn metadata(root: &Path) -> Result<Metadata> {
    let mut metadata = run::cargo(root);
    let json = run::output(metadata.args(["metadata", "--no-deps", "--format-version", "1"]))?;
    serde_json::from_str(&json).context("cargo metadata")
}

/// The packages of the workspace.
pub(crate) fn packages(root: &Path) -> Result<Vec<Package>> {
    Ok(metadata(root)?.packages)
}

/// Where cargo puts a binary of the workspace.
pub(crate) fn binary(root: &Path, name: &str) -> Result<PathBuf> {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    Ok(metadata(root)?.target_directory.join("debug").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_resolve_from_the_file_they_stand_in() {
        assert_eq!(resolve("docs/model.md", "../README.md").as_deref(), Some("README.md"));
        assert_eq!(resolve("docs/model.md", "./a/b.md").as_deref(), Some("docs/a/b.md"));
        assert_eq!(resolve("README.md", "docs/").as_deref(), Some("docs"));
        assert_eq!(resolve("README.md", "../x"), None);
        assert_eq!(resolve("README.md", "/etc/passwd"), None);
    }

    #[test]
    fn a_tree_knows_its_folders() {
        let tree = Tree::of(&[("sql/a/x.sql", ""), ("sql/a/y.sql", ""), ("sql/b/z.sql", "")]);
        assert_eq!(tree.folders_in("sql"), ["a", "b"]);
        assert!(tree.exists("sql/a") && tree.exists("sql/b/z.sql") && tree.exists(""));
        assert!(!tree.exists("sql/c") && !tree.exists("sq"));
    }
}
