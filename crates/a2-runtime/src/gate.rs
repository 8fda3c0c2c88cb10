//! How many handlers run at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const PART: usize = 4;

/// A number of places that are given in the order in which they are asked for.
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Places of one or two gates, one for each handler.
pub(crate) struct Places {
    own: Option<OwnedSemaphorePermit>,
    all: OwnedSemaphorePermit,
}

impl Gate {
    pub(crate) fn new(places: usize) -> Self {
        let places = places.min(Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(places)), waiting: AtomicUsize::new(0) }
    }

    /// How many wait for a place.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits for a place; none when the gate was closed.
    async fn enter(&self) -> Option<OwnedSemaphorePermit> {
        if let Some(place) = self.more(1) {
            return Some(place);
        }
        let waiting = Waiting::new(&self.waiting);
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        drop(waiting);
        place
    }

    /// The part of what is free that one takes at a time.
    fn share(&self) -> usize {
        self.places.available_permits().div_ceil(PART)
    }

    /// Up to `most` places if some are free at once.
    fn more(&self, most: usize) -> Option<OwnedSemaphorePermit> {
        let n = most.min(self.places.available_permits());
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        if n == 0 {
            return None;
        }
        let all = Arc::clone(&self.places).try_acquire_many_owned(n).ok();
        all.or_else(|| Arc::clone(&self.places).try_acquire_owned().ok())
    }
}

/// Counts as waiting until dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Places {
    /// Waits for one place, then takes up to `most` of what is free: a part only, so that others need not
    /// wait until it is known how many were needed.
    pub(crate) async fn wait(own: Option<&Gate>, all: &Gate, most: usize) -> Option<Self> {
        let own_place = match own {
            Some(gate) => Some(gate.enter().await?),
            None => None,
        };
        let mut places = Self { own: own_place, all: all.enter().await? };
        if most > 1
            && let Some(more) = Self::try_more(own, all, (most - 1).min(all.share()))
        {
            places.merge(more);
        }
        Some(places)
    }

    /// Up to `most` places if some are free at once.
    pub(crate) fn try_more(own: Option<&Gate>, all: &Gate, most: usize) -> Option<Self> {
        let own = match own {
            Some(gate) => Some(gate.more(most)?),
            None => None,
        };
        let most = own.as_ref().map_or(most, |own| own.num_permits());
        let all = all.more(most)?;
        let mut places = Self { own, all };
        let n = places.len();
        if let Some(own) = &mut places.own {
            let surplus = own.num_permits().saturating_sub(n);
            drop(own.split(surplus));
        }
        Some(places)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.num_permits()
    }

    /// Takes one place out; none when there is only one left.
    pub(crate) fn split(&mut self) -> Option<Self> {
        if self.len() < 2 {
            return None;
        }
        let own = match &mut self.own {
            Some(own) => Some(own.split(1)?),
            None => None,
        };
        Some(Self { own, all: self.all.split(1)? })
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.all.merge(other.all);
        if let (Some(own), Some(others)) = (&mut self.own, other.own) {
            own.merge(others);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn places_are_of_both_gates() {
        let (own, all) = (Gate::new(3), Gate::new(5));
        let mut three = Places::wait(Some(&own), &all, 64).await.unwrap();
        assert_eq!((three.len(), all.places.available_permits()), (2, 3));
        three.merge(Places::try_more(Some(&own), &all, 64).unwrap());
        assert_eq!((three.len(), all.places.available_permits()), (3, 2));
        assert!(Places::wait(Some(&own), &all, 1).now_or_never().is_none());
        let one = three.split().unwrap();
        drop(one);
        assert_eq!((own.places.available_permits(), all.places.available_permits()), (1, 3));
        let two = Places::wait(None, &all, 2).await.unwrap();
        assert!(Places::try_more(Some(&own), &all, 9).is_some_and(|p| p.len() == 1));
        drop((two, three));
        assert_eq!((own.places.available_permits(), all.places.available_permits()), (3, 5));
    }

    #[tokio::test]
    async fn who_waits_is_counted_while_waiting() {
        let all = Gate::new(1);
        let place = Places::wait(None, &all, 1).await.unwrap();
        {
            let mut second = Box::pin(Places::wait(None, &all, 1));
            assert!((&mut second).now_or_never().is_none());
            assert_eq!(all.waiting(), 1);
        }
        assert_eq!(all.waiting(), 0);
        drop(place);
        assert!(Places::wait(None, &all, 1).now_or_never().is_some());
    }
}
