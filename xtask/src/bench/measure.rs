//! Measuring side by side: the series of one bench take turns, round by round, so that a change of
//! the machine's mood meets all of them alike; rounds in which the disk was of another mood than in
//! the others are dropped.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::BoxFuture;
use serde::Serialize;

use super::Backend;
use super::probe::{self, CpuTimes};
use super::servers::{Servers, Space};
use super::stores::Engine;

/// What every measurement is told.
#[derive(Clone)]
pub(crate) struct Cx {
    /// Where files are made.
    pub(crate) dir: PathBuf,
    /// How long one measurement takes.
    pub(crate) time: Duration,
    /// The servers that run.
    pub(crate) servers: Servers,
}

impl Cx {
    /// A fresh space on an engine's server.
    pub(crate) async fn space(&self, engine: Engine) -> Result<Space> {
        let server = self.servers.of(engine.backend());
        server.with_context(|| format!("{} has a server", engine.name()))?.space().await
    }

    /// A fresh folder that is removed when dropped.
    pub(crate) fn folder(&self) -> Result<tempfile::TempDir> {
        tempfile::Builder::new()
            .prefix("a2-bench-")
            .tempdir_in(&self.dir)
            .with_context(|| self.dir.display().to_string())
    }
}

/// What a series' numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    PerSecond,
    Micros,
    Bytes,
    Count,
}

type Measure = Box<dyn Fn(Cx) -> BoxFuture<'static, Result<f64>> + Send + Sync>;

/// One thing that is measured once a round.
pub(crate) struct Series {
    name: String,
    unit: Unit,
    measure: Measure,
}

impl Series {
    pub(crate) fn new<F, Fut>(name: impl Into<String>, unit: Unit, measure: F) -> Self
    where
        F: Fn(Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<f64>> + Send + 'static,
    {
        Self { name: name.into(), unit, measure: Box::new(move |cx| Box::pin(measure(cx))) }
    }
}

/// Which side of a bound is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    AtLeast,
    AtMost,
}

/// What a figure must reach, and what it is meant to reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Target {
    pub(crate) side: Side,
    pub(crate) must: f64,
    pub(crate) goal: Option<f64>,
}

impl Target {
    pub(crate) const fn at_least(must: f64, goal: Option<f64>) -> Self {
        Self { side: Side::AtLeast, must, goal }
    }

    pub(crate) const fn at_most(must: f64, goal: Option<f64>) -> Self {
        Self { side: Side::AtMost, must, goal }
    }
}

/// A figure of the table: a series, as it is or over another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    of: usize,
    over: Option<usize>,
    target: Option<Target>,
}

/// Series that are measured side by side, and the figures that are read from them.
pub(crate) struct Bench {
    workload: String,
    engine: Engine,
    series: Vec<Series>,
    figures: Vec<Figure>,
}

impl Bench {
    pub(crate) fn new(workload: impl Into<String>, engine: Engine) -> Self {
        Self { workload: workload.into(), engine, series: Vec::new(), figures: Vec::new() }
    }

    /// Adds a series and gives its place.
    pub(crate) fn add(&mut self, series: Series) -> usize {
        self.series.push(series);
        self.series.len() - 1
    }

    /// Adds a figure: the series `of`, over the series `over` if there is one.
    pub(crate) fn figure(&mut self, of: usize, over: Option<usize>, target: Option<Target>) {
        self.figures.push(Figure { of, over, target });
    }

    /// What is measured.
    pub(crate) fn engine(&self) -> Engine {
        self.engine
    }

    /// Adds a series, and the figure of the first one, which is A2's, over it.
    pub(crate) fn beside(&mut self, series: Series, target: Target) {
        let over = self.add(series);
        self.figure(0, Some(over), Some(target));
    }

    /// Measures every series `rounds` times.
    pub(crate) async fn run(self, cx: &Cx, rounds: usize) -> Result<Measured> {
        eprintln!("{} ({})", self.workload, self.engine.name());
        let mut probes = Vec::with_capacity(rounds);
        let begin = CpuTimes::now();
        let mut values: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds); self.series.len()];
        for round in 1..=rounds {
            let before = probe::fsync_micros(&cx.dir)?;
            for (series, values) in self.series.iter().zip(&mut values) {
                let measured = (series.measure)(cx.clone()).await;
                let context = || format!("{}: {}", self.workload, series.name);
                values.push(measured.with_context(context)?);
            }
            let after = probe::fsync_micros(&cx.dir)?;
            probes.push((before + after) / 2.0);
            eprintln!("  round {round} of {rounds}: {}", self.last_values(&values));
        }
        let others = CpuTimes::now().zip(begin).map(|(end, begin)| end.others_since(begin));
        Ok(self.evaluate(&probes, &values, others))
    }

    fn last_values(&self, values: &[Vec<f64>]) -> String {
        let names = self.series.iter().map(|series| series.name.as_str());
        let last = values.iter().filter_map(|v| v.last());
        let pairs: Vec<_> = names.zip(last).map(|(name, v)| format!("{name} {v:.0}")).collect();
        pairs.join(", ")
    }

    fn evaluate(&self, probes: &[f64], values: &[Vec<f64>], others: Option<f64>) -> Measured {
        let kept = kept_rounds(probes);
        let keep = |values: &[f64]| kept.iter().map(|&round| values[round]).collect::<Vec<_>>();
        let figures = self.figures.iter().map(|figure| {
            let of = &self.series[figure.of];
            let over = figure.over.map(|over| &self.series[over]);
            let own = keep(&values[figure.of]);
            let reference = figure.over.map(|over| keep(&values[over]));
            let ratio = reference.as_ref().map(|reference| {
                Spread::of(own.iter().zip(reference).map(|(own, other)| own / other).collect())
            });
            MeasuredFigure {
                series: of.name.clone(),
                unit: of.unit,
                value: Spread::of(own),
                over: over.map(|series| series.name.clone()),
                over_value: reference.map(Spread::of),
                ratio,
                target: figure.target,
            }
        });
        Measured {
            workload: self.workload.clone(),
            backend: self.engine.backend(),
            setting: self.engine.name(),
            rounds: probes.len(),
            dropped: probes.len() - kept.len(),
            fsync_micros: Spread::of(probes.to_vec()),
            others_cpu: others,
            figures: figures.collect(),
        }
    }
}

/// The rounds whose probe differs from the median by no more than a factor of two.
fn kept_rounds(probes: &[f64]) -> Vec<usize> {
    let median = Spread::of(probes.to_vec()).median;
    let near = |probe: f64| probe <= 2.0 * median && median <= 2.0 * probe;
    (0..probes.len()).filter(|&round| near(probes[round])).collect()
}

/// Median, least and greatest of a series' rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of at least one value.
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        Self {
            median: f64::midpoint(at(last / 2), at(last.div_ceil(2))),
            min: at(0),
            max: at(last),
        }
    }
}

/// What a bench found.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) workload: String,
    pub(crate) backend: Backend,
    /// The backend and its durability.
    pub(crate) setting: String,
    pub(crate) rounds: usize,
    pub(crate) dropped: usize,
    pub(crate) fsync_micros: Spread,
    /// The share of the processors that other processes used meanwhile, where the system tells.
    pub(crate) others_cpu: Option<f64>,
    pub(crate) figures: Vec<MeasuredFigure>,
}

/// One figure with its reference.
#[derive(Debug, Serialize)]
pub(crate) struct MeasuredFigure {
    pub(crate) series: String,
    pub(crate) unit: Unit,
    pub(crate) value: Spread,
    pub(crate) over: Option<String>,
    pub(crate) over_value: Option<Spread>,
    pub(crate) ratio: Option<Spread>,
    pub(crate) target: Option<Target>,
}

/// How a figure stands to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Goal,
    Must,
    Missed,
}

impl MeasuredFigure {
    /// None without a target. The median decides.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let target = self.target?;
        let measured = self.ratio.unwrap_or(self.value).median;
        let meets = |bound: f64| match target.side {
            Side::AtLeast => measured >= bound,
            Side::AtMost => measured <= bound,
        };
        Some(match target.goal {
            Some(goal) if meets(goal) => Verdict::Goal,
            _ if meets(target.must) => Verdict::Must,
            _ => Verdict::Missed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_median_least_and_greatest() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(vec![4.0, 1.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
    }

    #[test]
    fn rounds_of_another_mood_are_dropped() {
        assert_eq!(kept_rounds(&[100.0, 110.0, 90.0]), [0, 1, 2]);
        assert_eq!(kept_rounds(&[100.0, 250.0, 90.0, 40.0, 110.0]), [0, 2, 4]);
    }

    #[tokio::test]
    async fn ratios_are_taken_round_by_round() {
        let mut bench = Bench::new("append-1", Engine::Memory);
        let turn = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let limit = bench.add(Series::new("limit", Unit::PerSecond, move |_| {
            let turn = turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            async move { Ok(if turn == 1 { 400.0 } else { 100.0 }) }
        }));
        let ours = bench.add(Series::new("A2", Unit::PerSecond, |_| async { Ok(80.0) }));
        bench.figure(ours, Some(limit), Some(Target::at_least(0.55, Some(0.9))));
        let servers = Servers::default();
        let cx = Cx { dir: std::env::temp_dir(), time: Duration::ZERO, servers };
        let measured = bench.run(&cx, 3).await.unwrap();
        // Which rounds are kept is the disk's choice; the ratio is 0.8 in all but the second.
        let figure = &measured.figures[0];
        assert_eq!(figure.value.median, 80.0);
        assert_eq!(figure.ratio.unwrap().max, 0.8);
    }

    #[test]
    fn the_median_decides() {
        let figure = |median: f64, target| MeasuredFigure {
            series: "A2".to_owned(),
            unit: Unit::PerSecond,
            value: Spread { median, min: 0.0, max: 9.0 },
            over: None,
            over_value: None,
            ratio: None,
            target,
        };
        let target = Some(Target::at_least(1.0, Some(2.0)));
        assert_eq!(figure(2.0, target).verdict(), Some(Verdict::Goal));
        assert_eq!(figure(1.0, target).verdict(), Some(Verdict::Must));
        assert_eq!(figure(0.9, target).verdict(), Some(Verdict::Missed));
        assert_eq!(figure(1.3, Some(Target::at_most(1.3, None))).verdict(), Some(Verdict::Must));
        assert_eq!(figure(1.4, Some(Target::at_most(1.3, None))).verdict(), Some(Verdict::Missed));
        assert_eq!(figure(1.4, None).verdict(), None);
    }
}
