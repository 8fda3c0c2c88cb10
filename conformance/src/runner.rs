//! Runs cases: in parallel, each in a store as it wants it, panics caught.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use a2_core::ManualClock;
use futures_util::{FutureExt, StreamExt, stream};

use crate::cx::{START, chain};
use crate::order::shuffled;
use crate::trace::Trace;
use crate::{CaseResult, Cx, Factory, Outcome, Report, Scenario, Setup, all_scenarios};

/// Which cases to run: those whose names contain one of the texts, or all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    texts: Vec<String>,
}

impl Filter {
    /// Every case.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Those whose names contain one of these texts; without a text every case.
    pub fn containing<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self { texts: texts.into_iter().map(Into::into).collect() }
    }

    /// Whether a case of this name is run.
    #[must_use]
    pub fn selects(&self, name: &str) -> bool {
        self.texts.is_empty() || self.texts.iter().any(|text| name.contains(text))
    }
}

type Progress = Arc<dyn Fn(&CaseResult) + Send + Sync>;

/// How to run.
#[derive(Clone)]
pub struct Options {
    jobs: usize,
    shuffle: Option<u64>,
    progress: Option<Progress>,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self { jobs: 2 * cores, shuffle: None, progress: None }
    }
}

impl Options {
    /// This many cases at once; twice the cores by default.
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs.max(1);
        self
    }

    /// The order of the cases is the one that this number stands for, not that of the suite.
    #[must_use]
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.shuffle = Some(seed);
        self
    }

    /// Is told each case's result as soon as it is known.
    #[must_use]
    pub fn on_progress(mut self, tell: impl Fn(&CaseResult) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(tell));
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("jobs", &self.jobs)
            .field("shuffle", &self.shuffle)
            .finish_non_exhaustive()
    }
}

/// Runs the cases that `filter` selects on stores of `factory`.
///
/// Within a multi-threaded Tokio runtime; cases run as tasks of their own.
pub async fn run(factory: Arc<dyn Factory>, filter: &Filter, options: Options) -> Report {
    let mut scenarios: Vec<_> =
        all_scenarios().filter(|scenario| filter.selects(&scenario.name())).collect();
    if let Some(seed) = options.shuffle {
        scenarios = shuffled(scenarios, seed);
    }
    let results = stream::iter(scenarios.into_iter().map(|scenario| {
        let (factory, progress) = (Arc::clone(&factory), options.progress.clone());
        async move {
            let name = scenario.name();
            let backend = factory.name().to_owned();
            // A task, so that cases use all cores.
            let ran = tokio::spawn(async move { run_one(&*factory, &scenario).await }).await;
            let result = ran.unwrap_or_else(|error| CaseResult {
                backend,
                case: name,
                outcome: Outcome::Failed { message: error.to_string(), operations: Vec::new() },
                millis: 0,
            });
            if let Some(tell) = progress {
                tell(&result);
            }
            result
        }
    }));
    Report { results: results.buffered(options.jobs).collect().await }
}

/// Runs one case on a store of `factory`.
pub async fn run_one(factory: &dyn Factory, scenario: &Scenario) -> CaseResult {
    keep_panic_locations();
    let started = Instant::now();
    let outcome = outcome(factory, scenario).await;
    CaseResult {
        backend: factory.name().to_owned(),
        case: scenario.name(),
        outcome,
        millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

async fn outcome(factory: &dyn Factory, scenario: &Scenario) -> Outcome {
    let case = scenario.case();
    let trace = Arc::new(Trace::default());
    let failed = |message| Outcome::Failed { message, operations: trace.operations() };
    let clock = (!scenario.is_live()).then(|| ManualClock::at(START));
    let stretch = factory.stretch().max(1);
    let deadline = Duration::from_secs(if case.is_slow() { 300 } else { 60 }) * stretch;

    let whole = async {
        let subject = match factory.open(Setup::new(clock.clone(), case.isolation())).await {
            Ok(subject) => subject,
            Err(error) => return failed(format!("no store: {}", chain(&error))),
        };
        if let Some(lacks) = case.needed().iter().find(|needed| !subject.has(**needed)) {
            return Outcome::Lacks { capability: *lacks };
        }
        let cx = Cx::new(subject, clock, stretch, Arc::clone(&trace));
        scenario.start(cx).await;
        Outcome::Passed
    };
    let whole = AssertUnwindSafe(IN_CASE.scope((), whole)).catch_unwind();
    match tokio::time::timeout(deadline, whole).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => failed(panic_message(&*panic)),
        Err(_) => failed(format!("not done within {deadline:?}")),
    }
}

tokio::task_local! {
    static IN_CASE: ();
}

thread_local! {
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A panic's message does not say where; the hook, which runs on the same thread before the panic
/// is caught, does. Panics of cases are reported, not printed.
fn keep_panic_locations() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IN_CASE.try_with(|()| ()).is_err() {
                return previous(info);
            }
            let place = info.location().map(Location::to_string);
            LAST_PANIC.with(|last| *last.borrow_mut() = place);
        }));
    });
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message");
    match LAST_PANIC.with(|last| last.borrow_mut().take()) {
        Some(place) => format!("{text} ({place})"),
        None => text.to_owned(),
    }
}
