//! The rules that no compiler knows, each a function of the tracked files that names what breaks it.

mod dependencies;
mod headers;
mod length;
mod licences;
mod links;
mod manifests;
mod markdown;
mod outside;
pub(crate) mod schema;
mod showcase;
mod suite;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

use crate::repo::{self, Tree};

/// Something that breaks a rule, and where.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    line: Option<usize>,
    what: String,
}

impl Problem {
    fn in_file(path: &str, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, what: what.into() }
    }

    /// `line` counts from 1.
    fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.what),
            None => write!(f, "{}: {}", self.path, self.what),
        }
    }
}

/// A rule over the tracked files.
type Rule = fn(&Tree) -> Vec<Problem>;

const RULES: &[(&str, Rule)] = &[
    ("headers", headers::check),
    ("length", length::check),
    ("links", links::check),
    ("outside", outside::check),
    ("dependencies", dependencies::check),
    ("markdown", markdown::check),
    ("licences", licences::check),
    ("showcase", showcase::check),
    ("suite", suite::check),
    ("schema", schema::check),
];

/// Checks every rule, prints what breaks one, and fails when anything does.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree::load(root)?;
    let mut broken = 0;
    for (name, rule) in RULES {
        broken += report(name, &rule(&tree));
    }
    broken += report("manifests", &manifests::check(&repo::packages(root)?));
    if broken > 0 {
        bail!("tidy: {broken} rules of {} are broken", RULES.len() + 1);
    }
    eprintln!("tidy: {} rules hold for {} text files", RULES.len() + 1, tree.texts().count());
    Ok(())
}

fn report(rule: &str, problems: &[Problem]) -> usize {
    for problem in problems {
        eprintln!("{problem} [{rule}]");
    }
    usize::from(!problems.is_empty())
}
