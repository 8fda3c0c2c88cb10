//! The plain paths of the scripts do what the general ones do: any history has the same answers and leaves
//! the same keys with and without them.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use a2_conformance::servers::Reply;
use a2_store_redis::request::RedriveAction;
use a2_store_redis::*;

use crate::util::*;

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.roll(count) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len() as u64) as usize].clone()
    }
}

/// The two stores, the dice, and what they have claimed.
struct History {
    plain: RedisStore,
    general: RedisStore,
    clock: Arc<ManualClock>,
    dice: Dice,
    events: u64,
    heads: Vec<(SessionId, HeadRef, u64)>,
}

/// Asks both; answers what they both said.
macro_rules! both {
    ($history:ident, $store:ident => $call:expr) => {{
        let said = {
            let $store = &$history.plain;
            $call.await
        };
        let other = {
            let $store = &$history.general;
            $call.await
        };
        assert_eq!(text(&said), text(&other), "{}", stringify!($call));
        said
    }};
}

/// What was said; the refusals of broken data name the scripts, which differ.
fn text<T: Debug>(said: &Result<T>) -> String {
    match said {
        Ok(said) => format!("{said:?}"),
        Err(error) => error.code().to_owned(),
    }
}

impl History {
    fn session(&mut self) -> SessionId {
        session(self.dice.pick(&["one", "two"]))
    }

    fn served(&mut self) -> Served {
        if self.dice.one_in(6) {
            return Served::ALL;
        }
        let mut entries = Vec::new();
        for consumer in ["a", "b", "c"] {
            if self.dice.one_in(2) {
                continue;
            }
            let mut entry = ServedConsumer::new(consumer).unwrap();
            if self.dice.one_in(4) {
                let mut log = LogDeclaration::new("log").unwrap();
                if self.dice.one_in(2) {
                    log = log.backfill();
                }
                if self.dice.one_in(2) {
                    let types = ["t1", "t2"].map(|name| EventType::new(name).unwrap());
                    let some = &types[..=self.dice.roll(2) as usize];
                    log = log.types(LogTypes::only(some.iter().cloned()).unwrap());
                }
                entry = entry.log(log);
            }
            if self.dice.one_in(4) {
                entry = entry.max_failures(2).unwrap();
            }
            entries.push(entry);
        }
        Served::only(entries).unwrap()
    }

    fn event(&mut self) -> NewEvent {
        self.events += 1;
        let id = if self.dice.one_in(15) { 1 + self.dice.roll(self.events) } else { self.events };
        let length = self.dice.pick(&[0, 10, 10, 10, 32_766, 32_767, 40_000]);
        let payload = if self.dice.one_in(4) { "x".repeat(length) } else { String::new() };
        let kind = self.dice.pick(&["t1", "t2", "t3"]);
        let mut targets = Vec::new();
        for target in [
            Target::lane("a", "x").unwrap(),
            Target::lane("a", "y").unwrap(),
            Target::lane("b", "").unwrap(),
            to("a"),
            to("c"),
        ] {
            if self.dice.one_in(4) {
                targets.push(target);
            }
        }
        let event = NewEvent::new(kind, &payload).unwrap().id(format!("e{id}")).unwrap();
        event.targets(targets)
    }

    /// Some events, each with an id of its own.
    fn events(&mut self, most: u64) -> Vec<NewEvent> {
        let count = self.dice.roll(most + 1);
        let mut events: Vec<NewEvent> = Vec::new();
        for _ in 0..count {
            let event = self.event();
            if events.iter().all(|known| known.event_id() != event.event_id()) {
                events.push(event);
            }
        }
        events
    }

    fn claim(&mut self) -> ClaimAvailable {
        let holder = self.dice.pick(&["w1", "w2"]);
        let ttl = Duration::from_millis(self.dice.pick(&[50, 500]));
        let served = self.served();
        let limit = self.dice.pick(&[1, 1, 2, 10]);
        let mut claim = ClaimAvailable::new(holder, ttl).unwrap().limit(limit).unwrap();
        claim = claim.served(served);
        if self.dice.one_in(5) {
            claim = claim.through(Index::new(self.dice.roll(self.events + 1)).unwrap());
        }
        if self.dice.one_in(5) {
            claim = claim.run(3).unwrap();
        }
        if self.dice.one_in(8) {
            claim = claim
                .exclude([CursorRef::lane(Consumer::new("a").unwrap(), Lane::new("x").unwrap())])
                .unwrap();
        }
        if self.dice.one_in(4) {
            claim = claim.max_failures(2).unwrap();
        }
        claim
    }

    /// A head that was claimed, mostly of late, and its attempt.
    fn claimed(&mut self) -> Option<(SessionId, HeadRef, u64)> {
        let last = self.heads.len().checked_sub(1)?;
        let back = self.dice.roll(12) as usize;
        Some(self.heads[last.saturating_sub(back)].clone())
    }

    fn keep(&mut self, session: &SessionId, claim: Option<Claim>) {
        if let Some(Claim::Claimed(claimed)) = claim {
            let heads = claimed.heads.iter();
            self.heads.extend(heads.map(|one| (session.clone(), one.head.clone(), one.attempt())));
        }
    }

    async fn step(&mut self) {
        self.clock.advance(Duration::from_millis(self.dice.pick(&[0, 1, 20, 100])));
        let s = self.session();
        match self.dice.roll(100) {
            0..35 => {
                let events = self.events(4);
                if events.is_empty() {
                    return;
                }
                let mut append = Append::new(events).unwrap().served(self.served());
                if self.dice.one_in(10) {
                    let head = Index::new(self.dice.roll(self.events)).unwrap();
                    append = append.expected_head(head);
                }
                let _ = both!(self, store => store.append(&s, append.clone()));
            }
            35..58 => {
                let claim = self.claim();
                let said = both!(self, store => store.claim_available(&s, claim.clone()));
                self.keep(&s, said.ok());
            }
            58..80 => {
                let Some((s, head, attempt)) = self.claimed() else { return };
                let attempt = if self.dice.one_in(10) { attempt + 1 } else { attempt };
                let complete = CompleteAttempt::new(head, attempt).served(self.served());
                let mut complete = complete.events(self.events(2)).unwrap();
                if self.dice.one_in(2) {
                    complete = complete.then_claim(self.claim());
                }
                let said = both!(self, store => store.complete_attempt(&s, complete.clone()));
                self.keep(&s, said.ok().and_then(|said| said.claim));
            }
            80..86 => {
                let Some((s, head, attempt)) = self.claimed() else { return };
                let mut fail = FailAttempt::new(head, attempt, "no");
                if self.dice.one_in(2) {
                    fail = fail.max_failures(2).unwrap();
                }
                if self.dice.one_in(2) {
                    fail = fail.retry_after(Duration::from_millis(50));
                }
                if self.dice.one_in(2) {
                    fail = fail.then_claim(self.claim());
                }
                let said = both!(self, store => store.fail_attempt(&s, fail.clone()));
                self.keep(&s, said.ok().and_then(|said| said.claim));
            }
            86..88 => {
                let Some((s, head, _)) = self.claimed() else { return };
                let action = self.dice.pick(&[RedriveAction::Retry, RedriveAction::Skip]);
                let redrive = Redrive::new(head, action).served(self.served());
                let _ = both!(self, store => store.redrive(&s, redrive.clone()));
            }
            88..90 => {
                let Some((s, head, attempt)) = self.claimed() else { return };
                let claims = [AttemptRef::new(head, attempt)];
                let release = ReleaseClaims::new("w1", claims.clone()).unwrap();
                let renew = RenewClaims::new("w2", claims, Duration::from_millis(80)).unwrap();
                let _ = both!(self, store => store.release_claims(&s, release.clone()));
                let _ = both!(self, store => store.renew_claims(&s, renew.clone()));
            }
            90..93 => {
                let key = self.dice.pick(&["k1", "k2", "k3"]);
                let after = Duration::from_millis(self.dice.pick(&[0, 10, 1_000]));
                let timer = Schedule::new(key, after, self.event()).unwrap();
                let _ = both!(self, store => store.schedule(&s, timer.clone()));
            }
            93..95 => {
                let fire = FireTimers::new().served(self.served());
                let _ = both!(self, store => store.fire_timers(&s, fire.clone()));
            }
            95..97 => {
                let Some((s, head, _)) = self.claimed() else { return };
                let write = SnapshotWrite::new(head.index, Json::null()).pins([head]).unwrap();
                let writes = PutSnapshots::new([write]).unwrap();
                let reducer = ReducerName::new("r").unwrap();
                let _ = both!(self, store => store.put_snapshots(&s, &reducer, writes.clone()));
            }
            97 => {
                let clear = Clear::new().id(format!("m{}", self.events)).unwrap();
                let _ = both!(self, store => store.clear(&s, clear.clone()));
            }
            98 => {
                let _ = both!(self, store => store.reclaim(&s));
            }
            _ => {
                let wake = WakeLog::new("b", LogDeclaration::new("log").unwrap()).unwrap();
                let _ = both!(self, store => store.wake_log(&s, wake.clone()));
                let _ = both!(self, store => store.pending(PendingPage::default()));
                let _ = both!(self, store => store.cursors(&s, Page::first()));
                let _ = both!(self, store => store.dead_letters(&s, Page::first()));
            }
        }
    }
}

/// Every key after the prefix with the hash of what it holds.
const CONTENTS: &str = r"
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. ':*')) do
  local kind, holds = redis.call('TYPE', key).ok, nil
  if kind == 'string' then
    holds = { redis.call('GET', key) }
  elseif kind == 'list' then
    holds = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'set' then
    holds = redis.call('SMEMBERS', key)
    table.sort(holds)
  elseif kind == 'zset' then
    holds = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else
    local fields = redis.call('HGETALL', key)
    holds = {}
    for at = 1, #fields, 2 do
      holds[#holds + 1] = redis.sha1hex(fields[at]) .. redis.sha1hex(fields[at + 1])
    end
    table.sort(holds)
  end
  for at, one in ipairs(holds) do
    holds[at] = redis.sha1hex(one)
  end
  found[#found + 1] = string.sub(key, #ARGV[1] + 1) .. ' ' .. redis.sha1hex(table.concat(holds))
end
table.sort(found)
return found";

async fn contents(space: &Space) -> Vec<String> {
    let said = space.command(&["EVAL", CONTENTS, "0", space.prefix()]).await;
    let Reply::Array(found) = said else { panic!("{said}") };
    found.iter().map(Reply::to_string).collect()
}

async fn any_history(seed: u64) {
    let (one, other) = (Space::new().await, Space::new().await);
    let (plain, clock) = one.timed().await;
    let same = Arc::clone(&clock);
    let general = other.with(|builder| builder.general_paths(true).clock(same)).await;
    let (dice, heads) = (Dice(seed), Vec::new());
    let mut history = History { plain, general, clock, dice, events: 0, heads };
    for step in 1..=400 {
        history.step().await;
        if step % 50 == 0 {
            assert_eq!(contents(&one).await, contents(&other).await, "seed {seed}, step {step}");
        }
    }
}

#[tokio::test]
async fn plain_paths_do_what_the_general_ones_do() {
    for seed in 1..=4 {
        any_history(seed).await;
    }
}
