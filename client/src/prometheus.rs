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
    /// | `hold_seconds` | `shard`, `end` | histogram: locks from the grant to their end |
    /// | `waiting` | `shard` | acquisitions without an outcome yet |
    /// | `held` | `shard` | locks with a holder |
    /// | `renewals_total` | `shard`, `answer` | renewals |
    /// | `expiries_total` | `shard` | locks that were not renewed before their deadline |
    /// | `recovery_periods_total` | `shard` | recovery periods seen |
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
        let seconds = Some(&Unit::Seconds);
        let help = "Acquisitions until their outcome, waits included";
        let mut family =
            self.encoder
                .encode_descriptor("acquire", help, seconds, MetricType::Histogram)?;
        for shard in &self.reading.shards {
            for outcome in Outcome::ALL {
                let labels = [("shard", shard.id.as_str()), ("outcome", outcome.as_str())];
                histogram(
                    family.encode_family(&labels)?,
                    shard.metrics.acquisitions(outcome),
                )?;
            }
        }
        let help = "Locks from the grant to their end";
        let mut family =
            self.encoder
                .encode_descriptor("hold", help, seconds, MetricType::Histogram)?;
        for shard in &self.reading.shards {
            for end in End::ALL {
                let labels = [("shard", shard.id.as_str()), ("end", end.as_str())];
                histogram(family.encode_family(&labels)?, shard.metrics.holds(end))?;
            }
        }
        let help = "Requests per batch";
        let mut family =
            self.encoder
                .encode_descriptor("batch_size", help, None, MetricType::Histogram)?;
        for shard in &self.reading.shards {
            let labels = [("shard", shard.id.as_str())];
            histogram(family.encode_family(&labels)?, shard.metrics.batches())?;
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<(), Error> {
        let help = "Renewals, by their answer";
        let mut family =
            self.encoder
                .encode_descriptor("renewals", help, None, MetricType::Counter)?;
        for shard in &self.reading.shards {
            for answer in Renewal::ALL {
                let labels = [("shard", shard.id.as_str()), ("answer", answer.as_str())];
                let renewals = shard.metrics.renewals(answer);
                family
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, u64>(&renewals, None)?;
            }
        }
        let help = "Locks that were not renewed before their deadline";
        self.counter("expiries", help, |shard| shard.metrics.expiries())?;
        let help = "Recovery periods seen";
        self.counter("recovery_periods", help, |shard| shard.metrics.recoveries())
    }

    fn gauges(&mut self) -> Result<(), Error> {
        let help = "Acquisitions without an outcome yet";
        self.gauge("waiting", help, |shard| shard.metrics.waiting() as u64)?;
        let help = "Locks with a holder";
        self.gauge("held", help, |shard| shard.metrics.held() as u64)?;
        let help = "1 if the connections for locks are open";
        self.gauge("shard_up", help, |shard| shard.is_up.into())?;
        let help = "The epoch of the shard's tokens";
        self.gauge("epoch", help, |shard| shard.epoch.0)?;
        let help = "Slots that move between shards";
        self.single("slots_moving", help, self.reading.slots_moving as u64)?;
        let help = "Version of the topology in use";
        self.single("topology_version", help, self.reading.topology_version)
    }

    fn counter(
        &mut self,
        name: &str,
        help: &str,
        of: impl Fn(&ShardReading) -> u64,
    ) -> Result<(), Error> {
        let mut family = self
            .encoder
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for shard in &self.reading.shards {
            let labels = [("shard", shard.id.as_str())];
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&of(shard), None)?;
        }
        Ok(())
    }

    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        of: impl Fn(&ShardReading) -> u64,
    ) -> Result<(), Error> {
        let mut family = self
            .encoder
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for shard in &self.reading.shards {
            let labels = [("shard", shard.id.as_str())];
            family.encode_family(&labels)?.encode_gauge(&of(shard))?;
        }
        Ok(())
    }

    fn single(&mut self, name: &str, help: &str, value: u64) -> Result<(), Error> {
        self.encoder
            .encode_descriptor(name, help, None, MetricType::Gauge)?
            .encode_gauge(&value)
    }
}

fn histogram(mut metric: MetricEncoder<'_>, values: &Histogram) -> Result<(), Error> {
    let buckets = values.buckets();
    let count = buckets.iter().map(|(_, count)| count).sum();
    metric.encode_histogram::<NoLabelSet>(values.sum(), count, &buckets, None)
}
