use std::fmt;

use serde::Serialize;

/// What the rounds of a run found: the median of them, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// The middle one; of an even number, the mean of the two in the middle.
    pub(crate) median: f64,
    /// The least.
    pub(crate) min: f64,
    /// The greatest.
    pub(crate) max: f64,
}

impl Spread {
    /// The spread of `values`.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = ((values.len() - 1) / 2, values.len() / 2);
        Self {
            median: (values[low] + values[high]) / 2.0,
            min: values[0],
            max: values[values.len() - 1],
        }
    }

    /// The spread of `above[i] / below[i]`: each round against itself.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub(crate) fn of_ratios(above: &[f64], below: &[f64]) -> Self {
        Self::of(above.iter().zip(below).map(|(above, below)| above / below))
    }
}

impl fmt::Display for Spread {
    /// `median (min … max)`, with the precision asked for.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = formatter.precision().unwrap_or(2);
        let Self { median, min, max } = self;
        write!(
            formatter,
            "{median:.digits$} ({min:.digits$} … {max:.digits$})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_between_the_two() {
        assert_eq!(
            Spread::of([3.0, 1.0, 2.0]),
            Spread {
                median: 2.0,
                min: 1.0,
                max: 3.0
            }
        );
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }

    #[test]
    fn a_ratio_is_taken_within_each_round() {
        let ratios = Spread::of_ratios(&[2.0, 20.0, 4.0], &[1.0, 10.0, 1.0]);
        assert_eq!(
            ratios,
            Spread {
                median: 2.0,
                min: 2.0,
                max: 4.0
            }
        );
    }
}
