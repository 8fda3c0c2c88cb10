//! A case: one rule of the model, its name, which rules and faults it checks, what it needs.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Cx, RuleId};

/// What not every backend has. A case whose capability is lacking is reported as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Capability {
    /// The store implements `Timers`.
    Timers,
    /// The store implements `Presence`.
    Presence,
    /// A second handle can be opened on the same data.
    Another,
    /// The store can be given limits lower than the model's.
    Limits,
    /// The store can be closed.
    Close,
    /// The suite can take an event out of what is stored, as a broken disk would.
    Damage,
}

impl Capability {
    /// All of them.
    pub const ALL: &[Self] =
        &[Self::Timers, Self::Presence, Self::Another, Self::Limits, Self::Close, Self::Damage];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timers => "timers",
            Self::Presence => "presence",
            Self::Another => "a second handle",
            Self::Limits => "limits of its own",
            Self::Close => "closing",
            Self::Damage => "a way to damage it",
        }
    }
}

/// Which clock a case runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockUse {
    /// With an injected `ManualClock`.
    Manual,
    /// With the store's real clock.
    Live,
    /// Once with each.
    Both,
}

/// What may be in a case's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// The data of other cases too: they use other sessions and namespaces.
    Shared,
    /// Nothing but what the case puts there.
    Own,
}

/// One rule, checked. It fails by panicking.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    name: &'static str,
    run: fn(Cx) -> BoxFuture<'static, ()>,
    /// Those of its whole table, and its own.
    rules: [&'static [RuleId]; 2],
    needs: &'static [Capability],
    clock: ClockUse,
    isolation: Isolation,
    slow: bool,
}

impl Case {
    pub(crate) const fn new(name: &'static str, run: fn(Cx) -> BoxFuture<'static, ()>) -> Self {
        let (clock, isolation) = (ClockUse::Manual, Isolation::Shared);
        Self { name, run, rules: [&[], &[]], needs: &[], clock, isolation, slow: false }
    }

    /// The table's come first, the case's own are added.
    pub(crate) const fn checks(mut self, rules: &'static [RuleId]) -> Self {
        if self.rules[0].is_empty() {
            self.rules[0] = rules;
        } else {
            self.rules[1] = rules;
        }
        self
    }

    pub(crate) const fn needs(mut self, needs: &'static [Capability]) -> Self {
        self.needs = needs;
        self
    }

    pub(crate) const fn clock(mut self, clock: ClockUse) -> Self {
        self.clock = clock;
        self
    }

    pub(crate) const fn own(mut self) -> Self {
        self.isolation = Isolation::Own;
        self
    }

    pub(crate) const fn slow(mut self) -> Self {
        self.slow = true;
        self
    }

    /// `area.topic.rule`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The name up to the first dot.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(group, _)| group)
    }

    /// The rules and faults that it checks.
    pub fn rules(&self) -> impl Iterator<Item = RuleId> + use<> {
        let [of_the_table, own] = self.rules;
        of_the_table.iter().chain(own).copied()
    }

    /// What the store must have.
    #[must_use]
    pub fn needed(&self) -> &'static [Capability] {
        self.needs
    }

    /// What may be in the store.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Whether it works on so much data that it takes seconds.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.slow
    }

    /// The case once for each clock that it runs with.
    pub fn scenarios(&self) -> impl Iterator<Item = Scenario> {
        let manual = (self.clock != ClockUse::Live).then_some(false);
        let live = (self.clock != ClockUse::Manual).then_some(true);
        let suffix = self.clock == ClockUse::Both;
        let case = *self;
        manual.into_iter().chain(live).map(move |live| Scenario { case, live, suffix })
    }
}

/// A case with the clock it runs with.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    case: Case,
    live: bool,
    suffix: bool,
}

impl Scenario {
    /// The case's name; with `@live` when this is the second run, with the store's real clock.
    #[must_use]
    pub fn name(&self) -> String {
        let suffix = if self.live && self.suffix { "@live" } else { "" };
        format!("{}{suffix}", self.case.name)
    }

    /// The case.
    #[must_use]
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// Whether the store keeps its real clock.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    pub(crate) fn start(&self, cx: Cx) -> BoxFuture<'static, ()> {
        (self.case.run)(cx)
    }
}

/// Registers an area's cases, one line each: `"area.topic.rule" => function;`, after the function
/// the options that the case needs.
///
/// ```text
/// cases![
///     "timers.fire.once" => fires_once: rules(R76), needs(Timers), both;
///     "pending.page.all" => every_page: rules(R62, R78), own, slow;
/// ];
/// ```
///
/// Options: `rules(R12, F4)`, what the case checks; `needs(…)`, the
/// capabilities; `both` (a second run with the real clock), `live`
/// (only that); `own` (nothing else may be in the store); `slow`. A first line `all: needs(Timers);`
/// gives options to every case of the table; its rules are added to the case's own.
macro_rules! cases {
    (
        $(all: $($all:ident $(($($all_arg:ident),+))?),+;)?
        $($name:literal => $run:ident $(: $($opt:ident $(($($arg:ident),+))?),+)?;)*
    ) => {
        /// This area's cases.
        pub(crate) static CASES: &[$crate::case::Case] = &{
            #[allow(unused_mut, dead_code, reason = "a table without defaults, without cases")]
            const fn with_defaults(mut case: $crate::case::Case) -> $crate::case::Case {
                $($(case = $crate::case::option!(case, $all $($($all_arg),+)?);)+)?
                case
            }
            [$({
                let case = with_defaults($crate::case::Case::new($name, |cx| Box::pin($run(cx))));
                $($(let case = $crate::case::option!(case, $opt $($($arg),+)?);)+)?
                case
            }),*]
        };
    };
}

/// One option of a case.
macro_rules! option {
    ($case:expr, rules $($rule:ident),+) => {
        $case.checks(&[$($crate::RuleId::$rule),+])
    };
    ($case:expr, needs $($capability:ident),+) => {
        $case.needs(&[$($crate::case::Capability::$capability),+])
    };
    ($case:expr, both) => {
        $case.clock($crate::case::ClockUse::Both)
    };
    ($case:expr, live) => {
        $case.clock($crate::case::ClockUse::Live)
    };
    ($case:expr, manual) => {
        $case.clock($crate::case::ClockUse::Manual)
    };
    ($case:expr, own) => {
        $case.own()
    };
    ($case:expr, slow) => {
        $case.slow()
    };
}

pub(crate) use {cases, option};
