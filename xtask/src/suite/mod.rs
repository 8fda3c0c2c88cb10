//! What the conformance suite checks: the documents' rules and faults, the cases that name them, the
//! saboteurs that prove the cases. From it come `docs/conformance.md` and tidy's check that nothing
//! is left out.
//!
//! `lab` has the suite linked in; tidy reads the same from the sources' text, so that it starts at
//! once. A test compares the two.

mod check;
mod documents;
mod render;
mod tables;

pub(crate) use check::check;
pub(crate) use render::{DOCUMENT, render};

/// The documents and tables that it is read from.
pub(crate) const MODEL: &str = "docs/model.md";
pub(crate) const FAULTS: &str = "docs/faults.md";
pub(crate) const CASES: &str = "conformance/src/cases/";
pub(crate) const SABOTEURS: &str = "conformance/src/saboteurs/mod.rs";

/// A backend of ours, and what cases may need and it does not have.
pub(crate) struct Backend {
    pub(crate) name: &'static str,
    pub(crate) lacks: &'static [&'static str],
}

/// The backends there are. A test opens each and asks.
pub(crate) const BACKENDS: [Backend; 2] =
    [Backend { name: "memory", lacks: &["Damage"] }, Backend { name: "sqlite", lacks: &[] }];

/// The suite as its sources and documents tell it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Suite {
    /// The rules, then the faults.
    pub(crate) rules: Vec<Rule>,
    /// By name.
    pub(crate) cases: Vec<Case>,
    /// By name.
    pub(crate) saboteurs: Vec<Saboteur>,
}

/// A rule of the model, or a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    /// `R12`, `F3`.
    pub(crate) id: String,
    /// Its text, on one line.
    pub(crate) text: String,
    /// The document and the line that it stands in.
    pub(crate) place: (&'static str, usize),
}

/// A case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) rules: Vec<String>,
    /// The capabilities that it needs.
    pub(crate) needs: Vec<String>,
    /// Whether it runs with the store's real clock as well, or with that alone.
    pub(crate) live: bool,
}

/// A store that breaks a rule on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Saboteur {
    pub(crate) name: String,
    pub(crate) rule: String,
    pub(crate) breaks: String,
    pub(crate) caught_by: String,
}

impl Suite {
    /// Puts it together; cases and saboteurs in whatever order.
    pub(crate) fn new(
        model: &str,
        faults: &str,
        mut cases: Vec<Case>,
        mut saboteurs: Vec<Saboteur>,
    ) -> Self {
        let mut rules = documents::read(model, 'R', MODEL);
        rules.extend(documents::read(faults, 'F', FAULTS));
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        saboteurs.sort_by(|a, b| a.name.cmp(&b.name));
        Self { rules, cases, saboteurs }
    }

    /// From the sources' text: the documents, the files of the cases, that of the saboteurs.
    pub(crate) fn read<'a>(
        model: &str,
        faults: &str,
        cases: impl IntoIterator<Item = &'a str>,
        saboteurs: &str,
    ) -> Self {
        let cases = cases.into_iter().flat_map(tables::cases).collect();
        Self::new(model, faults, cases, tables::saboteurs(saboteurs))
    }

    fn case(&self, name: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.name == name)
    }

    fn cases_of<'a>(&'a self, rule: &'a str) -> impl Iterator<Item = &'a Case> {
        self.cases.iter().filter(move |case| case.rules.iter().any(|named| named == rule))
    }

    fn saboteurs_of<'a>(&'a self, rule: &'a str) -> impl Iterator<Item = &'a Saboteur> {
        self.saboteurs.iter().filter(move |saboteur| saboteur.rule == rule)
    }
}

impl Rule {
    /// Whether it is a fault that nothing checks yet: its store does not exist or is young.
    fn waits(&self) -> bool {
        self.text.contains("Not yet: the ")
    }

    /// The tests of a store's own that it names, as `package::function`.
    pub(crate) fn own_tests(&self) -> impl Iterator<Item = (&str, &str)> {
        let quoted = self.text.split('`').skip(1).step_by(2);
        quoted.filter_map(|name| name.split_once("::")).filter(|(package, _)| package.contains('-'))
    }
}

impl Case {
    /// The name up to the first dot.
    fn area(&self) -> &str {
        self.name.split_once('.').map_or(&self.name, |(area, _)| area)
    }

    fn runs_on(&self, backend: &Backend) -> bool {
        !self.needs.iter().any(|needed| backend.lacks.contains(&needed.as_str()))
    }
}
