//! Which account is next: a few are asked for all the time, most hardly ever.

use rand::RngExt;

/// Draws from 0 to n - 1, the number k with a probability proportional to 1 / (k + 1)^s.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    /// Sums of the weights up to each number.
    sums: Vec<f64>,
}

impl Zipf {
    /// Numbers below `count`, at least 1, skewed by the exponent `skew`; 0: all the same.
    pub(super) fn new(count: u32, skew: f64) -> Self {
        let weight = |rank: u32| f64::from(rank).powf(-skew);
        let sums = (1..=count).scan(0.0, |sum, rank| {
            *sum += weight(rank);
            Some(*sum)
        });
        Self {
            sums: sums.collect(),
        }
    }

    /// Draws a number.
    pub(super) fn draw(&self, random: &mut impl RngExt) -> u32 {
        let last = self.sums.len() - 1;
        let at = random.random::<f64>() * self.sums[last];
        self.sums.partition_point(|&sum| sum <= at).min(last) as u32
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    const DRAWS: u32 = 200_000;

    fn counts(count: u32, skew: f64) -> Vec<f64> {
        let zipf = Zipf::new(count, skew);
        let mut random = StdRng::seed_from_u64(7);
        let mut counts = vec![0.0; count as usize];
        (0..DRAWS).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1.0);
        counts
    }

    #[test]
    fn ranks_are_drawn_as_often_as_their_weights_say() {
        for skew in [0.0, 0.5, 1.0, 2.0] {
            let total: f64 = (1..=50).map(|rank| f64::from(rank).powf(-skew)).sum();
            for (rank, count) in (1..=50).zip(counts(50, skew)) {
                let expected = f64::from(DRAWS) * f64::from(rank).powf(-skew) / total;
                // Five standard deviations, and a little for accounts that are hardly ever drawn.
                let tolerance = 5.0 * expected.sqrt() + 5.0;
                let difference = (count - expected).abs();
                assert!(
                    difference < tolerance,
                    "skew {skew}, rank {rank}: {count}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn one_account_is_always_drawn() {
        assert_eq!(counts(1, 1.0), [f64::from(DRAWS)]);
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        assert_eq!(counts(1000, 1.0), counts(1000, 1.0));
    }
}
