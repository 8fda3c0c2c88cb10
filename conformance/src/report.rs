//! What a run found.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Capability;

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The rule holds.
    Passed,
    /// It does not.
    Failed {
        /// What was expected and where.
        message: String,
        /// The case's last operations, the latest last.
        operations: Vec<String>,
    },
    /// The backend does not have what the case needs.
    Lacks {
        /// What it lacks.
        capability: Capability,
    },
}

/// One case on one backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The backend's name.
    pub backend: String,
    /// The case's name.
    pub case: String,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

impl CaseResult {
    /// The case's name up to the first dot.
    #[must_use]
    pub fn group(&self) -> &str {
        self.case.split_once('.').map_or(&self.case, |(group, _)| group)
    }

    /// Whether the rule does not hold.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }
}

/// Names the backend, the case and, for a failure, the operations that led to it.
impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, case, outcome, millis } = self;
        match outcome {
            Outcome::Passed => write!(f, "{backend} {case}: passed in {millis} ms"),
            Outcome::Lacks { capability } => {
                write!(f, "{backend} {case}: lacks {}", capability.name())
            }
            Outcome::Failed { message, operations } => {
                write!(f, "{backend} {case}: FAILED after {millis} ms\n  {message}")?;
                let mut latest = operations.iter().rev();
                if let Some(last) = latest.next() {
                    write!(f, "\n  operation: {last}")?;
                }
                latest.try_for_each(|earlier| write!(f, "\n  before:    {earlier}"))
            }
        }
    }
}

/// Counts of one group on one backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Rules that hold.
    pub passed: usize,
    /// Rules that do not.
    pub failed: usize,
    /// Cases whose capability is lacking.
    pub lacking: usize,
    /// Time of all the cases together, in milliseconds.
    pub millis: u64,
}

/// The results of one or more backends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// Every case on every backend, in the order of the suite.
    pub results: Vec<CaseResult>,
}

impl Report {
    /// Adds another backend's results.
    pub fn merge(&mut self, other: Self) {
        self.results.extend(other.results);
    }

    /// Whether no case failed (and there was one at all).
    #[must_use]
    pub fn is_success(&self) -> bool {
        !self.results.is_empty() && self.failures().next().is_none()
    }

    /// The cases that failed.
    pub fn failures(&self) -> impl Iterator<Item = &CaseResult> {
        self.results.iter().filter(|result| result.is_failure())
    }

    /// The backends, in the order they ran.
    #[must_use]
    pub fn backends(&self) -> Vec<&str> {
        let mut backends: Vec<&str> = Vec::new();
        for result in &self.results {
            if !backends.contains(&result.backend.as_str()) {
                backends.push(&result.backend);
            }
        }
        backends
    }

    /// The groups by name, each with the counts of every backend.
    #[must_use]
    pub fn groups(&self) -> BTreeMap<&str, BTreeMap<&str, Counts>> {
        let mut groups: BTreeMap<&str, BTreeMap<&str, Counts>> = BTreeMap::new();
        for result in &self.results {
            let group = groups.entry(result.group()).or_default();
            let counts = group.entry(&result.backend).or_default();
            match result.outcome {
                Outcome::Passed => counts.passed += 1,
                Outcome::Failed { .. } => counts.failed += 1,
                Outcome::Lacks { .. } => counts.lacking += 1,
            }
            counts.millis += result.millis;
        }
        groups
    }

    /// The report as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Strings and numbers alone: it always serializes.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
