//! Callers: one in a loop, or several at once, for a given time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::Barrier;

/// What one caller does, over and over.
pub(crate) trait Worker: Send + 'static {
    /// What comes before the first turn and is not measured.
    fn prepare(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// One turn; gives how many operations it was.
    fn turn(&mut self) -> impl Future<Output = Result<u64>> + Send;
}

/// The clock is read, and others get their turn, once in so many turns: reading it costs as much as
/// a tenth of an append to memory.
const STRIDE: u64 = 16;
/// A series ends at this many operations also when time is left: memory is finite.
const MOST: u64 = 1_000_000;

/// How long callers warm up at least, where an operation takes longer than reading the clock.
const CONNECTING: Duration = Duration::from_millis(300);

/// Operations a second of one caller.
pub(crate) async fn one<W: Worker>(time: Duration, stride: Stride, mut worker: W) -> Result<f64> {
    warm_up(time, MOST, stride, &mut worker).await?;
    let start = Instant::now();
    let done = turns(time, MOST, stride, &mut worker).await?;
    Ok(per_second(done, start))
}

/// Operations a second of several callers together.
pub(crate) async fn many<W: Worker>(
    time: Duration,
    stride: Stride,
    workers: Vec<W>,
) -> Result<f64> {
    let count = workers.len();
    let (begin, end) = (Arc::new(Barrier::new(count + 1)), Arc::new(Barrier::new(count + 1)));
    let share = MOST / count.max(1) as u64;
    let tasks: Vec<_> = workers
        .into_iter()
        .map(|mut worker| {
            let (begin, end) = (Arc::clone(&begin), Arc::clone(&end));
            tokio::spawn(async move {
                let warm = warm_up(time, share, stride, &mut worker).await;
                begin.wait().await;
                let done = match warm {
                    Ok(()) => turns(time, share, stride, &mut worker).await,
                    Err(error) => Err(error),
                };
                end.wait().await;
                done
            })
        })
        .collect();
    begin.wait().await;
    let start = Instant::now();
    end.wait().await;
    let elapsed = start.elapsed().as_secs_f64();
    let mut done = 0;
    for task in tasks {
        done += task.await??;
    }
    Ok(done as f64 / elapsed)
}

/// How often a caller looks at the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stride {
    /// After every turn.
    Each,
    /// After every sixteenth turn.
    Sixteen,
}

async fn warm_up<W: Worker>(
    time: Duration,
    most: u64,
    stride: Stride,
    worker: &mut W,
) -> Result<()> {
    worker.prepare().await?;
    // A store on a server makes its connections, and plans on each, when they are needed first.
    let time = if stride == Stride::Each { (time / 10).max(CONNECTING) } else { time / 10 };
    turns(time, most / 10, stride, worker).await.map(|_| ())
}

async fn turns<W: Worker>(
    time: Duration,
    most: u64,
    stride: Stride,
    worker: &mut W,
) -> Result<u64> {
    let stride = if stride == Stride::Each { 1 } else { STRIDE };
    let start = Instant::now();
    let mut done = 0;
    loop {
        for _ in 0..stride {
            done += worker.turn().await?;
        }
        if done >= most || start.elapsed() >= time {
            return Ok(done);
        }
        if stride > 1 {
            tokio::task::yield_now().await;
        }
    }
}

/// The rate of `done` operations since `start`.
pub(crate) fn per_second(done: u64, start: Instant) -> f64 {
    done as f64 / start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(Arc<std::sync::atomic::AtomicU64>);

    impl Worker for Count {
        async fn turn(&mut self) -> Result<u64> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(1)
        }
    }

    #[tokio::test]
    async fn a_series_ends_at_its_most_operations() {
        let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let worker = Count(Arc::clone(&count));
        one(Duration::from_secs(3_600), Stride::Sixteen, worker).await.unwrap();
        assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), MOST + MOST / 10);
    }

    struct Fails;

    impl Worker for Fails {
        async fn turn(&mut self) -> Result<u64> {
            anyhow::bail!("no")
        }
    }

    #[tokio::test]
    async fn a_failure_of_one_caller_is_told() {
        let workers = (0..4).map(|_| Fails).collect();
        assert!(many(Duration::from_secs(3_600), Stride::Each, workers).await.is_err());
    }
}
