//! The server, and what it was asked to do.

use redis::aio::MultiplexedConnection;
use ringfence_coordinator::spawn::RedisServer;

use crate::{Clocks, Failure, Reading};

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) pid: u32,
    connection: MultiplexedConnection,
}

impl Server {
    pub(crate) async fn new(redis: &RedisServer) -> Result<Self, Failure> {
        let url = redis.url();
        let client = redis::Client::open(url.as_str())?;
        Ok(Self {
            pid: redis.pid().ok_or("the server is gone")?,
            connection: client.get_multiplexed_async_connection().await?,
            url,
        })
    }

    /// The commands it has done so far, and what `clocks` show.
    pub(crate) async fn read(&self, clocks: &Clocks) -> Result<(Commands, Reading), Failure> {
        let mut info = redis::cmd("INFO");
        info.arg("commandstats");
        let stats: String = info.query_async(&mut self.connection.clone()).await?;
        Ok((Commands::parse(&stats), clocks.read()?))
    }
}

/// How many commands a server has done, those that scripts call included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Commands {
    /// Of all kinds but INFO, which is the bench's own.
    pub(crate) all: f64,
    pub(crate) publish: f64,
}

impl Commands {
    fn parse(stats: &str) -> Self {
        let mut commands = Self {
            all: 0.0,
            publish: 0.0,
        };
        for line in stats.lines() {
            let Some((name, calls)) = calls(line) else {
                continue;
            };
            if name != "info" {
                commands.all += calls;
            }
            if name == "publish" || name == "spublish" {
                commands.publish += calls;
            }
        }
        commands
    }
}

/// Of `cmdstat_set:calls=7,usec=…`: set, 7.
fn calls(line: &str) -> Option<(&str, f64)> {
    let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    let (calls, _) = rest.split_once(',')?;
    Some((name, calls.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_counted_and_our_own_are_not() {
        let stats = "# Commandstats\r\n\
                     cmdstat_info:calls=9,usec=8,usec_per_call=0.89\r\n\
                     cmdstat_client|setname:calls=1,usec=2,usec_per_call=2.00\r\n\
                     cmdstat_publish:calls=40,usec=80,usec_per_call=2.00\r\n\
                     cmdstat_fcall:calls=100,usec=80,usec_per_call=0.80\r\n";
        let wanted = Commands {
            all: 141.0,
            publish: 40.0,
        };
        assert_eq!(Commands::parse(stats), wanted);
    }
}
