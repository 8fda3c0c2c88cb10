//! The order that cases run in. They are independent of each other, so that any will do; to see that
//! they are, they can be shuffled.

/// The same list in the order that `seed` stands for.
pub(crate) fn shuffled<T>(mut list: Vec<T>, seed: u64) -> Vec<T> {
    let mut state = seed;
    list.sort_by_cached_key(|_| split_mix(&mut state));
    list
}

/// SplitMix64: the next of a sequence of well mixed numbers.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_split_mix_64() {
        let mut state = 1_234_567;
        assert_eq!(split_mix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_seed_stands_for_one_order_of_all() {
        let list: Vec<u32> = (0..100).collect();
        let first = shuffled(list.clone(), 1);
        assert_eq!(first, shuffled(list.clone(), 1));
        assert_ne!(first, list);
        assert_ne!(first, shuffled(list.clone(), 2));
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, list);
    }
}
