//! The numbers of a client, for Prometheus.

use std::fmt::Error;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet},
    metrics::MetricType,
    registry::{Registry, Unit},
};
use ringfence_coordinator::{
    engine::EngineMetrics,
    metrics::{End, Histogram, Outcome, Reading, Renewal, ShardReading},
};

use crate::Client;

/// The prefix of all names.
const PREFIX: &str = "ringfence";

impl Client {
    /// Adds the numbers of this client to `registry`: `ringfence_*`, per shard. No label has a key.
    /// They are read when the registry is encoded, and end with the client.
    ///
    /// | metric | labels | content |
    /// |---|---|---|
    /// | `acquire_seconds` | `shard`, `outcome` | histogram: acquisitions until their outcome, waits included |
    /// | `wait_seconds` | `shard`, `outcome` | histogram: the same, only of acquisitions that were not granted at once: until the grant, or until the wait was over |
    /// | `hold_seconds` | `shard`, `end` | histogram: locks from the grant to their end |
    /// | `waiting` | `shard` | acquisitions without an outcome yet |
    /// | `held` | `shard` | locks with a holder |
    /// | `renewals_total` | `shard`, `answer` | renewals |
    /// | `expiries_total` | `shard` | locks that were not renewed before their deadline |
    /// | `second_rounds_total` | `shard` | requests for locks with replicas that needed a second round trip; by the shard of the first replica |
    /// | `recovery_periods_total` | `shard` | recovery periods, whichever process activated the shard |
    /// | `slots_moved_total` | `shard` | slots that the shard took over from others, by the topologies that this client has used |
    /// | `batch_size` | `shard` | histogram: requests per batch |
    /// | `shard_up` | `shard` | 1 if the connections for locks are open |
    /// | `epoch` | `shard` | the epoch of its tokens |
    /// | `slots_moving` | | slots that move between shards |
    /// | `topology_version` | | version of the topology in use |
    pub fn register_metrics(&self, registry: &mut Registry) {
        let numbers = Numbers(self.engine.metrics());
        let registry = registry.sub_registry_with_prefix(PREFIX);
        registry.register_collector(Box::new(numbers));
    }
}

#[derive(Debug)]
struct Numbers(EngineMetrics);

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let Some(reading) = self.0.read() else {
            return Ok(());
        };
        let mut numbers = Encoder {
            reading: &reading,
            encoder: &mut encoder,
        };
        numbers.histograms()?;
        numbers.counters()?;
        numbers.gauges()
    }
}

struct Encoder<'a, 'e> {
    reading: &'a Reading,
    encoder: &'a mut DescriptorEncoder<'e>,
}

impl Encoder<'_, '_> {
    fn histograms(&mut self) -> Result<(), Error> {
        let (kind, seconds) = (MetricType::Histogram, Some(&Unit::Seconds));
        let help = "Acquisitions until their outcome, waits included";
        self.per_shard("acquire", help, seconds, kind, |family, shard| {
            Outcome::ALL.into_iter().try_for_each(|outcome| {
                let labels = [label(shard), ("outcome", outcome.as_str())];
                let values = shard.metrics.acquisitions(outcome);
                histogram(family.encode_family(&labels)?, values)
            })
        })?;
        let help =
            "Acquisitions that were not granted at once, until the grant or the end of the wait";
        self.per_shard("wait", help, seconds, kind, |family, shard| {
            Outcome::AFTER_A_WAIT.into_iter().try_for_each(|outcome| {
                let labels = [label(shard), ("outcome", outcome.as_str())];
                let values = shard.metrics.waits(outcome);
                values.map_or(Ok(()), |values| {
                    histogram(family.encode_family(&labels)?, values)
                })
            })
        })?;
        let help = "Locks from the grant to their end";
        self.per_shard("hold", help, seconds, kind, |family, shard| {
            End::ALL.into_iter().try_for_each(|end| {
                let labels = [label(shard), ("end", end.as_str())];
                histogram(family.encode_family(&labels)?, shard.metrics.holds(end))
            })
        })?;
        let help = "Requests per batch";
        self.per_shard("batch_size", help, None, kind, |family, shard| {
            let labels = [label(shard)];
            histogram(family.encode_family(&labels)?, shard.metrics.batches())
        })
    }

    fn counters(&mut self) -> Result<(), Error> {
        let kind = MetricType::Counter;
        let help = "Renewals, by their answer";
        self.per_shard("renewals", help, None, kind, |family, shard| {
            Renewal::ALL.into_iter().try_for_each(|answer| {
                let labels = [label(shard), ("answer", answer.as_str())];
                counter(
                    family.encode_family(&labels)?,
                    shard.metrics.renewals(answer),
                )
            })
        })?;
        let help = "Locks that were not renewed before their deadline";
        self.per_shard("expiries", help, None, kind, |family, shard| {
            counter(
                family.encode_family(&[label(shard)])?,
                shard.metrics.expiries(),
            )
        })?;
        let help = "Requests for locks with replicas that needed a second round trip";
        self.per_shard("second_rounds", help, None, kind, |family, shard| {
            counter(
                family.encode_family(&[label(shard)])?,
                shard.metrics.second_rounds(),
            )
        })?;
        let help = "Recovery periods seen";
        self.per_shard("recovery_periods", help, None, kind, |family, shard| {
            counter(
                family.encode_family(&[label(shard)])?,
                shard.metrics.recoveries(),
            )
        })?;
        let help = "Slots that the shard took over from others";
        self.per_shard("slots_moved", help, None, kind, |family, shard| {
            counter(
                family.encode_family(&[label(shard)])?,
                shard.metrics.slots_taken_over(),
            )
        })
    }

    fn gauges(&mut self) -> Result<(), Error> {
        let help = "Acquisitions without an outcome yet";
        self.gauge("waiting", help, |shard| shard.metrics.waiting())?;
        let help = "Locks with a holder";
        self.gauge("held", help, |shard| shard.metrics.held())?;
        let help = "1 if the connections for locks are open";
        self.gauge("shard_up", help, |shard| shard.is_up.into())?;
        let help = "The epoch of the shard's tokens";
        self.gauge("epoch", help, |shard| shard.epoch.0)?;
        let help = "Slots that move between shards";
        self.single("slots_moving", help, self.reading.slots_moving as u64)?;
        let help = "Version of the topology in use";
        self.single("topology_version", help, self.reading.topology_version)
    }

    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        of: impl Fn(&ShardReading) -> u64,
    ) -> Result<(), Error> {
        self.per_shard(name, help, None, MetricType::Gauge, |family, shard| {
            family
                .encode_family(&[label(shard)])?
                .encode_gauge(&of(shard))
        })
    }

    fn single(&mut self, name: &str, help: &str, value: u64) -> Result<(), Error> {
        self.encoder
            .encode_descriptor(name, help, None, MetricType::Gauge)?
            .encode_gauge(&value)
    }

    /// Has `write` write the values of each shard.
    fn per_shard(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        kind: MetricType,
        write: impl Fn(&mut MetricEncoder<'_>, &ShardReading) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut family = self.encoder.encode_descriptor(name, help, unit, kind)?;
        let mut shards = self.reading.shards.iter();
        shards.try_for_each(|shard| write(&mut family, shard))
    }
}

fn label(shard: &ShardReading) -> (&'static str, &str) {
    ("shard", shard.id.as_str())
}

fn counter(mut metric: MetricEncoder<'_>, count: u64) -> Result<(), Error> {
    metric.encode_counter::<NoLabelSet, _, u64>(&count, None)
}

fn histogram(mut metric: MetricEncoder<'_>, values: &Histogram) -> Result<(), Error> {
    let buckets = values.buckets();
    metric.encode_histogram::<NoLabelSet>(values.sum(), values.count(), &buckets, None)
}
