//! A vector that grows without moving what it holds: a log grows for long, and copying it each time
//! its room doubles took a tenth of an append.

/// Entries of a full chunk.
const CHUNK: usize = 64;

/// A sequence that is pushed to, read and written in place, and cut.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    /// All but the last are full, and the last is not empty.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> Chunks<T> {
    pub(crate) fn len(&self) -> usize {
        match self.chunks.last() {
            Some(last) => (self.chunks.len() - 1) * CHUNK + last.len(),
            None => 0,
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.chunks.get_mut(at / CHUNK)?.get_mut(at % CHUNK)
    }

    /// Adds an entry at the end.
    pub(crate) fn push(&mut self, entry: T) {
        if let Some(last) = self.chunks.last_mut().filter(|last| last.len() < CHUNK) {
            last.push(entry);
        } else {
            self.push_chunk(entry);
        }
    }

    #[cold]
    fn push_chunk(&mut self, entry: T) {
        // Most sessions are short: the first chunk grows as it is needed.
        let room = if self.chunks.is_empty() { 1 } else { CHUNK };
        let mut chunk = Vec::with_capacity(room);
        chunk.push(entry);
        self.chunks.push(chunk);
    }

    /// The entries from `from` on.
    pub(crate) fn iter_from(&self, from: usize) -> impl Iterator<Item = &T> {
        let (first, rest) = match self.chunks.get(from / CHUNK..) {
            Some([first, rest @ ..]) => (first.get(from % CHUNK..).unwrap_or_default(), rest),
            _ => (&[][..], &[][..]),
        };
        first.iter().chain(rest.iter().flatten())
    }

    /// Drops at most `limit` entries from the end, and says how many.
    pub(crate) fn shorten(&mut self, limit: usize) -> usize {
        let mut left = limit;
        while let Some(last) = self.chunks.last_mut().filter(|_| left > 0) {
            let cut = left.min(last.len());
            last.truncate(last.len() - cut);
            left -= cut;
            if last.is_empty() {
                self.chunks.pop();
            }
        }
        limit - left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_where_they_were_pushed() {
        let mut chunks = Chunks::default();
        assert_eq!((chunks.len(), chunks.get(0)), (0, None));
        for n in 0..200 {
            chunks.push(n);
        }
        assert_eq!((chunks.len(), chunks.get(199)), (200, Some(&199)));
        assert_eq!((chunks.get(63), chunks.get(64), chunks.get(200)), (Some(&63), Some(&64), None));
        let from = |n| chunks.iter_from(n).copied().collect::<Vec<_>>();
        assert_eq!(from(126), (126..200).collect::<Vec<_>>());
        assert_eq!(from(128), (128..200).collect::<Vec<_>>());
        assert_eq!(from(200), Vec::<i32>::new());
        assert_eq!(from(500), Vec::<i32>::new());
    }

    #[test]
    fn it_is_cut_from_the_end() {
        let mut chunks = Chunks::default();
        for n in 0..130 {
            chunks.push(n);
        }
        assert_eq!((chunks.shorten(2), chunks.get(127), chunks.get(128)), (2, Some(&127), None));
        assert_eq!((chunks.shorten(100), chunks.len()), (100, 28));
        assert_eq!((chunks.shorten(100), chunks.len()), (28, 0));
        assert_eq!(chunks.shorten(1), 0);
    }
}
