//! Quotas found the slow way: every way to share the slots, and how far it is from the weights.

/// Every way to share `slots` among `count`, at least one each.
pub(crate) fn sharings(slots: u32, count: usize) -> Box<dyn Iterator<Item = Vec<u32>>> {
    if count == 1 {
        return Box::new(std::iter::once(vec![slots]));
    }
    let first_max = slots - (count as u32 - 1);
    Box::new((1..=first_max).flat_map(move |first| {
        sharings(slots - first, count - 1).map(move |mut rest| {
            rest.insert(0, first);
            rest
        })
    }))
}

/// The sum of `q^2 / w`, times the product of all weights.
pub(crate) fn error(quotas: &[u32], weights: &[u32]) -> u128 {
    let product: u128 = weights.iter().map(|&weight| u128::from(weight)).product();
    let square = |quota: u32| u128::from(quota) * u128::from(quota);
    quotas
        .iter()
        .zip(weights)
        .map(|(&q, &w)| square(q) * (product / u128::from(w)))
        .sum()
}
