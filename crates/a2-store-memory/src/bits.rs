//! A set of small numbers: which sessions of a shard have work. One that goes idle after each job
//! enters and leaves it all the time, which an ordered map makes dear.

/// A set of numbers, one bit each.
#[derive(Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn insert(&mut self, number: usize) {
        let word = number / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    pub(crate) fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    /// The numbers from `from` on, in order.
    pub(crate) fn iter_from(&self, from: usize) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate().skip(from / 64);
        words.flat_map(move |(at, &word)| {
            let mut left = if at == from / 64 { word & (u64::MAX << (from % 64)) } else { word };
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit as usize)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_enter_and_leave() {
        let mut bits = Bits::default();
        for number in [0, 63, 64, 200, 7] {
            bits.insert(number);
        }
        bits.remove(63);
        bits.remove(1_000);
        let from = |n| bits.iter_from(n).collect::<Vec<_>>();
        assert_eq!(from(0), [0, 7, 64, 200]);
        assert_eq!(from(7), [7, 64, 200]);
        assert_eq!(from(8), [64, 200]);
        assert_eq!(from(200), [200]);
        assert_eq!(from(201), Vec::<usize>::new());
        assert_eq!(from(10_000), Vec::<usize>::new());
    }
}
