//! Many connections at once, as `cmtime` of rdma-core makes them, and how fast. All are asked for together, then all are
//! closed.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use uroce::{
    CmEvent, CmEventType, CmId, CompletionQueue, ConnParam, EventChannel, PortSpace, ProtectionDomain, QpType,
};

use super::figure::Figure;
use super::{Ends, PATIENCE, guest};
use crate::agent::{Agent, Handle};
use crate::peer::Result;

/// How many.
const CONNECTIONS: usize = 200;
/// The same for `cmtime`.
const CONNECTIONS_TEXT: &str = "200";
const NAME: &str = "connects per second";

/// We connect to the guest, which also connects to itself, to compare.
pub(super) fn client(ends: &mut Ends<'_>) -> Result<()> {
    let program = serve(ends.agent, ends.guest, ends.port)?;
    let done = connect_all(ends);
    guest::stop(ends.agent, program)?;
    ends.figures.push(done?);
    let program = serve(ends.agent, ends.guest, ends.port)?;
    let own = cmtime(ends.agent, ends.guest, ends.port, "rxe to rxe");
    guest::stop(ends.agent, program)?;
    ends.figures.push(own?);
    Ok(())
}

/// The guest connects to us.
pub(super) fn server(ends: &mut Ends<'_>) -> Result<()> {
    let channel = ends.context.create_event_channel()?;
    let listener = CmId::new(&channel, PortSpace::Tcp);
    listener.bind_addr(ends.here())?;
    listener.listen(0)?;
    let parts = Parts::new(ends)?;
    let figure = std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve_all(&channel, &parts).map_err(|error| error.to_string()));
        let figure = cmtime(ends.agent, ends.own, ends.port, "rxe to uRoCE");
        serving.join().map_err(|_| "accepting panicked")??;
        figure
    });
    ends.figures.push(figure?);
    Ok(())
}

/// What the queue pairs of all connections share.
struct Parts {
    pd: ProtectionDomain,
    cq: CompletionQueue,
}

impl Parts {
    fn new(ends: &Ends<'_>) -> Result<Self> {
        Ok(Self { pd: ends.context.alloc_pd()?, cq: ends.context.create_cq(16).build()? })
    }

    fn give_qp(&self, id: &CmId) -> Result<()> {
        let qp = self.pd.create_qp(QpType::Rc, &self.cq, &self.cq).max_send_wr(1).max_recv_wr(1);
        id.create_qp(qp.build()?)?;
        Ok(())
    }
}

/// Connects all, and closes all again.
fn connect_all(ends: &Ends<'_>) -> Result<Figure> {
    let channel = ends.context.create_event_channel()?;
    let parts = Parts::new(ends)?;
    let ids: Vec<CmId> = (0..CONNECTIONS).map(|_| CmId::new(&channel, PortSpace::Tcp)).collect();
    ids.iter().try_for_each(|id| id.resolve_addr(None, ends.there()))?;
    await_all(&channel, CmEventType::AddrResolved)?;
    ids.iter().try_for_each(CmId::resolve_route)?;
    await_all(&channel, CmEventType::RouteResolved)?;
    ids.iter().try_for_each(|id| parts.give_qp(id))?;
    let start = Instant::now();
    ids.iter().try_for_each(|id| id.connect(&ConnParam::default()))?;
    await_all(&channel, CmEventType::Established)?;
    let figure = Figure::rate(NAME, "uRoCE to rxe", CONNECTIONS, start.elapsed());
    ids.iter().try_for_each(CmId::disconnect)?;
    await_all(&channel, CmEventType::Disconnected)?;
    Ok(figure)
}

/// Waits until this has happened to all ids.
fn await_all(channel: &EventChannel, wanted: CmEventType) -> Result<()> {
    for done in 0..CONNECTIONS {
        while next(channel, wanted, done)?.event != wanted {}
    }
    Ok(())
}

/// The next event, which must be this one or one that may come at any time.
fn next(channel: &EventChannel, wanted: CmEventType, done: usize) -> Result<CmEvent> {
    let event = channel.get_event(Some(PATIENCE))?;
    let event = event.ok_or_else(|| format!("{wanted} came {done} times instead of {CONNECTIONS}"))?;
    if event.event == wanted || event.event == CmEventType::TimewaitExit {
        return Ok(event);
    }
    Err(format!("{} with status {} instead of {wanted}, after {done} of it", event.event, event.status)
        .into())
}

/// Accepts all, and answers until all have been closed.
fn serve_all(channel: &EventChannel, parts: &Parts) -> Result<()> {
    let mut ids = Vec::with_capacity(CONNECTIONS);
    let mut closed = 0;
    while closed < CONNECTIONS {
        let event = channel.get_event(Some(PATIENCE))?;
        let event = event.ok_or_else(|| format!("{closed} of {} connections were closed", ids.len()))?;
        match event.event {
            CmEventType::ConnectRequest => {
                parts.give_qp(&event.id)?;
                event.id.accept(&ConnParam::default())?;
                ids.push(event.id);
            }
            CmEventType::Disconnected => {
                event.id.disconnect()?;
                closed += 1;
            }
            CmEventType::Established | CmEventType::TimewaitExit => {}
            other => return Err(format!("{other} with status {}", event.status).into()),
        }
    }
    Ok(())
}

/// Starts the guest's `cmtime` as a server; it serves for ever.
pub(super) fn serve(agent: &mut Agent, at: IpAddr, port: u16) -> Result<Handle> {
    let (address, text) = (at.to_string(), port.to_string());
    guest::serve(agent, &["cmtime", "-b", &address, "-p", &text, "-c", CONNECTIONS_TEXT], port)
}

/// Runs the guest's `cmtime` as a client.
fn cmtime(agent: &mut Agent, to: IpAddr, port: u16, direction: &'static str) -> Result<Figure> {
    let (to, port) = (to.to_string(), port.to_string());
    let program = agent.spawn(&["cmtime", "-s", &to, "-p", &port, "-c", CONNECTIONS_TEXT])?;
    let output = guest::finish(agent, program)?;
    let milliseconds = connect_time(&output).ok_or_else(|| format!("cmtime tells no time: {output}"))?;
    let time = Duration::try_from_secs_f64(milliseconds / 1e3)?;
    Ok(Figure::rate(NAME, direction, CONNECTIONS, time))
}

/// The time that all connects took together, in milliseconds: first column of the row "connect".
fn connect_time(output: &str) -> Option<f64> {
    let row = output.lines().find_map(|line| line.strip_prefix("connect "))?;
    row.trim_start_matches([' ', ':']).split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::connect_time;

    const OUTPUT: &str = "connecting\nstep              total ms     max ms\n\
                          create qp    :      104.72       5.77\n\
                          connect      :     3850.43    3747.95  136517.00\n\
                          disconnect   :     1143.68     358.19\n";

    #[test]
    fn the_time_of_all_connects_is_found() {
        assert_eq!(connect_time(OUTPUT), Some(3850.43));
        assert_eq!(connect_time("connecting\n"), None);
    }
}
