//! What a request must be (protocol sections 6.3 and 6.8).

use super::CmError;
use super::active::{PKEY, check_qpn_number};
use super::params::{Sender, is_pair};
use super::terms::RequestTerms;
use crate::qp::QpType;
use crate::wire::Mtu;
use crate::wire::cm::{CmTransport, IpCmHeader, PrivateData, RejectInfo, RejectReason, Req, ServiceId, gid};

/// What a refused request is answered.
pub(super) type Refusal = (RejectReason, RejectInfo);

/// What a request that passed says.
pub(super) type Checked = (RequestTerms, Option<IpCmHeader>);

/// A refusal that says no more than why.
pub(super) fn plain(reason: RejectReason) -> Refusal {
    (reason, RejectInfo::default())
}

/// What a request must be, whoever takes it.
pub(super) fn check_req(
    from: &Sender,
    req: &Req,
    qp_type: QpType,
    port_mtu: Mtu,
) -> Result<Checked, Refusal> {
    let transport = if qp_type == QpType::Uc { CmTransport::Uc } else { CmTransport::Rc };
    if req.transport != transport {
        return Err(plain(RejectReason::InvalidTransportType));
    }
    if req.primary.remote_gid != from.destination || !is_pkey(req.pkey) {
        return Err((RejectReason::InvalidGid, info(&gid(from.destination))));
    }
    if req.alternate.is_present() {
        return Err(plain(RejectReason::InvalidAltGid));
    }
    check_qpn_number(req.local_qpn).map_err(|_: CmError| plain(RejectReason::UnsupportedRequest))?;
    let bad_mtu = (RejectReason::InvalidMtu, info(&[port_mtu.code()]));
    let terms = RequestTerms::of(req).filter(|terms| terms.path_mtu <= port_mtu).ok_or(bad_mtu)?;
    let ip = ip_header(from, req.service_id, &req.private_data);
    Ok((terms, ip.map_err(|()| plain(RejectReason::ConsumerDefined))?))
}

/// Both forms of the one partition that there is: full and limited members.
pub(super) const fn is_pkey(pkey: u16) -> bool {
    pkey & 0x7fff == PKEY & 0x7fff
}

fn info(bytes: &[u8]) -> RejectInfo {
    RejectInfo::new(bytes).unwrap_or_default()
}

/// The IP CM header, which says what the IP header of the datagram says: connections are between the addresses that
/// they are asked for between (protocol section 6.8).
pub(super) fn ip_header<const N: usize>(
    from: &Sender,
    service_id: ServiceId,
    data: &PrivateData<N>,
) -> Result<Option<IpCmHeader>, ()> {
    if !service_id.has_ip_header() {
        return Ok(None);
    }
    let header = IpCmHeader::parse(data).ok_or(())?;
    let matches = header.source == from.source && header.destination == from.destination;
    if matches && is_pair(header.source, header.destination) { Ok(Some(header)) } else { Err(()) }
}
