//! The consequences of an error, with the same methods for every public error.

use std::{error::Error, time::Duration};

/// Whether a request that failed may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It did not, and will not.
    None,
    /// It may have, or may do so later.
    Unknown,
}

/// The consequences of an error. Errors also have these methods without the trait.
pub trait Failure: Error {
    /// Whether the same call may succeed if it is repeated.
    fn is_retryable(&self) -> bool;

    /// Whether the call may have taken effect.
    fn effect(&self) -> Effect;

    /// The earliest time for another attempt, if it is known.
    fn retry_after(&self) -> Option<Duration>;
}

/// Implements [`Failure`] by the methods of the same names.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_failure {
    ($($error:ty),+ $(,)?) => {$(
        impl $crate::Failure for $error {
            fn is_retryable(&self) -> bool {
                <$error>::is_retryable(self)
            }

            fn effect(&self) -> $crate::Effect {
                <$error>::effect(self)
            }

            fn retry_after(&self) -> Option<std::time::Duration> {
                <$error>::retry_after(self)
            }
        }
    )+};
}

/// Gives errors in a caller's input their consequences: a repeat cannot succeed, nothing was applied.
#[doc(hidden)]
#[macro_export]
macro_rules! invalid_input {
    ($($error:ty),+ $(,)?) => {$(
        impl $error {
            /// Always false.
            pub fn is_retryable(&self) -> bool {
                false
            }

            /// Always `Effect::None`.
            pub fn effect(&self) -> $crate::Effect {
                $crate::Effect::None
            }

            /// Always none.
            pub fn retry_after(&self) -> Option<std::time::Duration> {
                None
            }
        }

        $crate::impl_failure!($error);
    )+};
}

invalid_input!(
    crate::AmountError,
    crate::NameError,
    crate::ReferenceError,
    crate::TermsError,
    crate::UnitError,
);
impl_failure!(
    crate::CounterError,
    crate::ManifestError,
    crate::ServiceError,
    crate::StorageError,
    crate::lock::LockError,
    crate::lock::SegmentedLockError,
    crate::segment::Refusal,
);
