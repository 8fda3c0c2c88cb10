//! The table: on the terminal, as Markdown for the documentation, as JSON for programs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::Backend;
use super::measure::{Measured, MeasuredFigure, Side, Spread, Unit, Verdict};
use super::peers;
use super::probe::Machine;

/// Everything that one run found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// The version of each backend's engine and when a commit is durable.
    pub(crate) engines: Vec<(Backend, String)>,
    pub(crate) seconds: f64,
    /// Whether others' crates were measured as well.
    pub(crate) peers: bool,
    pub(crate) benches: Vec<Measured>,
}

const HEADS: [&str; 8] = [
    "workload",
    "store",
    "measured",
    "median (min–max)",
    "over",
    "ratio (min–max)",
    "must / goal",
    "",
];

/// What the columns mean, for who reads the table.
const LEGEND: &str = "\
Rates are operations a second (append and batch: events; job: full cycles of append, claim and
complete; chain: completions; read and project: events), higher is better; times are µs and sizes
bytes, lower is better. `over` is what was measured beside it in the same round, and the ratio is
taken round by round. One process, Tokio's multi-threaded runtime, about 200 bytes of JSON an event.";

/// What stands beside a backend.
fn limits(backend: Backend) -> &'static str {
    match backend {
        Backend::Memory => "",
        Backend::Sqlite => {
            "\
The bare limits are prepared statements on a bare connection (INSERT into one log table with its
primary key; INSERT, UPDATE … RETURNING, UPDATE on a queue table with one partial index; SELECT into
owned values), with several callers behind a writer that commits in groups; the same-rows limits write
the rows and indexes of A2's own layout by prepared statements without any check."
        }
        Backend::Postgres => {
            "\
The bare limits are prepared statements, a connection for each caller (INSERT into one log table with
its primary key; INSERT, UPDATE of the session's first row FOR UPDATE SKIP LOCKED, UPDATE on a queue
table with one partial index; SELECT into owned values); the same-rows limits write the rows and indexes
of A2's own layout by one prepared statement for each operation, without any check. Their connections
plan as the store's do. The server's folder is a temporary one; the store has its default of 16
connections. Row versions, index entries and bytes of the write-ahead log are what the log itself says
(pg_walinspect), without images of whole pages."
        }
        Backend::Redis => {
            "\
The bare limits are XADD, and scripts on a list and a hash, one for each step of a job; the same-keys
limits write the keys of A2's own layout by one script for each operation, without any check. All of
them go through fred, as the store does, on as many connections (two). The server's folder is a
temporary one. Its append-only file is synced every second and not rewritten meanwhile."
        }
    }
}

impl Report {
    /// The figures that miss what they must reach.
    pub(crate) fn missed(&self) -> Vec<String> {
        let figures = self.benches.iter().flat_map(|b| b.figures.iter().map(move |f| (b, f)));
        let missed = figures.filter(|(_, figure)| figure.verdict() == Some(Verdict::Missed));
        missed.map(|(bench, figure)| cells(bench, figure).join(" | ")).collect()
    }

    /// For the terminal.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_header(HEADS);
        let backends: Vec<_> = self.engines.iter().map(|(backend, _)| *backend).collect();
        self.rows(&backends).for_each(|row| {
            table.add_row(row);
        });
        for column in [3, 5] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    /// Puts the results of each backend that was measured between its two marks of a Markdown file,
    /// whose other text stays.
    pub(crate) fn write_into(&self, path: &Path) -> Result<()> {
        let context = || path.display().to_string();
        let mut text = fs::read_to_string(path).with_context(context)?;
        for (backend, _) in &self.engines {
            text = replaced(&text, *backend, &self.markdown(*backend)).with_context(context)?;
        }
        fs::write(path, text).with_context(context)
    }

    /// What the columns mean.
    pub(crate) fn legend(&self, backends: &[Backend]) -> String {
        let mut parts = vec![LEGEND];
        parts.extend(backends.iter().map(|backend| limits(*backend)));
        if self.peers && backends.contains(&Backend::Sqlite) {
            parts.push(peers::LEGEND);
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }

    fn markdown(&self, backend: Backend) -> String {
        let of = [backend];
        let mut text = format!("{}\n\n{}\n\n", self.facts(&of), self.legend(&of));
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        text.push_str(&line(&HEADS.map(str::to_owned)));
        text.push_str("|---|---|---|--:|---|--:|---|---|\n");
        self.rows(&of).for_each(|row| text.push_str(&line(&row)));
        text
    }

    /// Where and how these were measured.
    pub(crate) fn facts(&self, backends: &[Backend]) -> String {
        let m = &self.machine;
        let memory = m.memory_gib.map_or_else(String::new, |gib| format!(", {gib} GiB"));
        let benches = || self.benches.iter().filter(|bench| backends.contains(&bench.backend));
        let others = match benches().filter_map(|bench| bench.others_cpu).reduce(f64::max) {
            Some(most) => {
                format!(" Other processes used at most {:.0} % of the processors.", 100.0 * most)
            }
            None => String::new(),
        };
        let dropped: usize = benches().map(|bench| bench.dropped).sum();
        let rounds: usize = benches().map(|bench| bench.rounds).sum();
        let engines = self.engines.iter().filter(|(of, _)| backends.contains(of));
        let engines: Vec<_> =
            engines.map(|(of, facts)| format!("{}: {facts}.\n", of.name())).collect();
        format!(
            "A2 {}, {}, {}.\n{}\
             {} × {}{memory}; a page appended and synced takes {:.0} µs here.\n\
             {} s a measurement; {dropped} of {rounds} rounds dropped because the disk was more than \
             twice as fast or slow.{others}",
            m.a2,
            m.rustc,
            m.system,
            engines.concat(),
            m.cores,
            m.cpu,
            m.fsync_micros,
            self.seconds
        )
    }

    fn rows<'a>(&'a self, backends: &'a [Backend]) -> impl Iterator<Item = [String; 8]> + 'a {
        let benches = self.benches.iter().filter(|bench| backends.contains(&bench.backend));
        benches.flat_map(|b| b.figures.iter().map(move |figure| cells(b, figure)))
    }
}

/// The text with these results between the backend's two marks.
fn replaced(text: &str, backend: Backend, results: &str) -> Result<String> {
    let [begin, end] =
        ["results", "end of results"].map(|mark| format!("<!-- {mark}: {} -->", backend.name()));
    let places = text.find(&begin).zip(text.find(&end)).filter(|(begin, end)| begin < end);
    let (from, to) = places.with_context(|| format!("{begin} and {end} must stand in it"))?;
    Ok(format!("{}\n\n{results}\n{}", &text[..from + begin.len()], &text[to..]))
}

fn cells(bench: &Measured, figure: &MeasuredFigure) -> [String; 8] {
    let over = figure.over.as_ref().zip(figure.over_value);
    let mark = match figure.verdict() {
        None => "",
        Some(Verdict::Goal) => "goal",
        Some(Verdict::Must) => "met",
        Some(Verdict::Missed) => "MISSED",
    };
    let target = figure.target.map_or_else(String::new, |target| {
        let side = if target.side == Side::AtLeast { "≥" } else { "≤" };
        let unit = if figure.ratio.is_some() { None } else { Some(figure.unit) };
        let bound = |value| unit.map_or_else(|| plain(value), |unit| amount(value, unit));
        let goal = target.goal.map_or_else(String::new, |goal| format!(" / {}", bound(goal)));
        format!("{side} {}{goal}", bound(target.must))
    });
    [
        bench.workload.clone(),
        bench.setting.clone(),
        figure.series.clone(),
        spread(figure.value, |value| amount(value, figure.unit)),
        over.map_or_else(String::new, |(name, value)| {
            format!("{name}: {}", amount(value.median, figure.unit))
        }),
        figure.ratio.map_or_else(String::new, |ratio| spread(ratio, plain)),
        target,
        mark.to_owned(),
    ]
}

fn spread(spread: Spread, show: impl Fn(f64) -> String) -> String {
    format!("{} ({}–{})", show(spread.median), show(spread.min), show(spread.max))
}

fn plain(ratio: f64) -> String {
    format!("{ratio:.2}")
}

fn amount(value: f64, unit: Unit) -> String {
    match unit {
        Unit::PerSecond if value >= 999_500.0 => format!("{:.2} M/s", value / 1e6),
        Unit::PerSecond if value >= 999.5 => format!("{:.1} k/s", value / 1e3),
        Unit::PerSecond => format!("{value:.0}/s"),
        Unit::Micros if value < 100.0 => format!("{value:.1} µs"),
        Unit::Micros => format!("{value:.0} µs"),
        Unit::Bytes => format!("{value:.0} B"),
        Unit::Count => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::Target;

    #[test]
    fn a_figure_is_one_row() {
        let of = |median: f64, min: f64, max: f64| Spread { median, min, max };
        let figure = MeasuredFigure {
            series: "A2".to_owned(),
            unit: Unit::PerSecond,
            value: of(5_432.1, 5_000.0, 6_000.0),
            over: Some("INSERT".to_owned()),
            over_value: Some(of(8_000.0, 7_000.0, 9_000.0)),
            ratio: Some(of(0.68, 0.6, 0.7)),
            target: Some(Target::at_least(0.55, Some(0.9))),
        };
        let bench = Measured {
            workload: "append-1".to_owned(),
            backend: Backend::Sqlite,
            setting: "sqlite FULL".to_owned(),
            rounds: 3,
            dropped: 0,
            fsync_micros: of(100.0, 90.0, 110.0),
            others_cpu: None,
            figures: vec![],
        };
        assert_eq!(
            cells(&bench, &figure),
            [
                "append-1",
                "sqlite FULL",
                "A2",
                "5.4 k/s (5.0 k/s–6.0 k/s)",
                "INSERT: 8.0 k/s",
                "0.68 (0.60–0.70)",
                "≥ 0.55 / 0.90",
                "met"
            ]
        );
    }

    #[test]
    fn results_replace_those_of_their_own_backend_alone() {
        let text = "a\n<!-- results: redis -->\nold\n<!-- end of results: redis -->\nb\n\
                    <!-- results: memory -->\nkept\n<!-- end of results: memory -->\n";
        let written = replaced(text, Backend::Redis, "new\n").unwrap();
        let new = "<!-- results: redis -->\n\nnew\n\n<!-- end of results: redis -->";
        assert_eq!(
            written,
            format!(
                "a\n{new}\nb\n<!-- results: memory -->\nkept\n<!-- end of results: memory -->\n"
            )
        );
        let error = replaced(text, Backend::Postgres, "new").unwrap_err().to_string();
        assert!(error.contains("<!-- results: postgres -->"), "{error}");
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!(amount(1_234_567.0, Unit::PerSecond), "1.23 M/s");
        assert_eq!(amount(812.0, Unit::PerSecond), "812/s");
        assert_eq!(amount(12.34, Unit::Micros), "12.3 µs");
        assert_eq!(amount(512.4, Unit::Bytes), "512 B");
    }
}
