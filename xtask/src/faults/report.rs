//! What came of it, for people.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use a2_conformance::history::{Answer, Asked, History, Note};

use super::theatre::Theatre;

/// What was done to a backend, and what came of it.
pub(super) struct Outcome {
    name: String,
    what: String,
    lacks: Vec<String>,
    span: Duration,
    pub(super) seed: u64,
    pub(super) rounds: u64,
    /// How often each harm was done, and the longest that it took then until all wrote again.
    harms: BTreeMap<&'static str, (u64, Duration)>,
    answered: u64,
    refused: u64,
    unknown: u64,
    seen: BTreeMap<&'static str, u64>,
    pub(super) violations: Vec<String>,
}

impl Outcome {
    pub(super) fn new(name: &str, theatre: &dyn Theatre, span: Duration, seed: u64) -> Self {
        Self {
            name: name.to_owned(),
            what: theatre.describe(),
            lacks: theatre.lacks(),
            span,
            seed,
            rounds: 0,
            harms: theatre.harms().into_iter().map(|harm| (harm, (0, Duration::ZERO))).collect(),
            answered: 0,
            refused: 0,
            unknown: 0,
            seen: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    pub(super) fn harmed(&mut self, harm: &'static str, took: Duration) {
        let (times, longest) = self.harms.entry(harm).or_default();
        *times += 1;
        *longest = took.max(*longest);
    }

    pub(super) fn count(&mut self, history: &History) {
        let mut open = 0_u64;
        for note in &history.notes {
            match note {
                Note::Began { asked: Asked::Stream { .. }, .. } => self.saw("streams", 1),
                Note::Began { .. } => open += 1,
                Note::Ended { answer, .. } => {
                    open = open.saturating_sub(1);
                    self.answered += 1;
                    match answer {
                        Answer::Refused { .. } => self.refused += 1,
                        Answer::Appended { events, replayed } => {
                            self.saw("events", if *replayed { 0 } else { events.len() });
                            self.saw("replays", usize::from(*replayed));
                        }
                        Answer::Completed { events, replayed, .. } => {
                            self.saw("completions", usize::from(!replayed));
                            self.saw("events", if *replayed { 0 } else { events.len() });
                            self.saw("replays", usize::from(*replayed));
                        }
                        Answer::Superseded { .. } => self.saw("superseded", 1),
                        Answer::Failed { .. } => self.saw("failures", 1),
                        Answer::Cleared { .. } => self.saw("clears", 1),
                        _ => {}
                    }
                }
                Note::Yielded { .. } => self.saw("streamed", 1),
                _ => {}
            }
        }
        self.unknown += open;
    }

    fn saw(&mut self, what: &'static str, times: usize) {
        *self.seen.entry(what).or_default() += times as u64;
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Faults: {}\n", self.name)?;
        writeln!(f, "{}\n", self.what)?;
        let minutes = self.span.as_secs_f64() / 60.0;
        writeln!(f, "{minutes:.1} minutes in {} rounds, seed {}.\n", self.rounds, self.seed)?;
        writeln!(f, "| harm | times | longest until all wrote again |\n|---|---|---|")?;
        for (harm, (times, longest)) in &self.harms {
            writeln!(f, "| {harm} | {times} | {} ms |", longest.as_millis())?;
        }
        writeln!(f)?;
        let (answered, refused, unknown) = (self.answered, self.refused, self.unknown);
        let seen: Vec<_> = self.seen.iter().map(|(what, n)| format!("{n} {what}")).collect();
        writeln!(f, "- calls answered: {answered}, of these refused: {refused}")?;
        writeln!(f, "- calls of unknown outcome: {unknown}")?;
        writeln!(f, "- among them: {}", seen.join(", "))?;
        let longest = self.harms.values().map(|(_, longest)| *longest).max().unwrap_or_default();
        writeln!(f, "- longest time to recover: {} ms", longest.as_millis())?;
        for lack in &self.lacks {
            writeln!(f, "- **not done**: {lack}")?;
        }
        writeln!(f, "- violations: {}", self.violations.len())?;
        for violation in self.violations.iter().take(20) {
            writeln!(f, "  - {violation}")?;
        }
        Ok(())
    }
}
