//! Messages of connection management (protocol sections 6.1 to 6.5; IBTA volume 1, chapter 12).
//!
//! [`CmMad::parse`] turns the 256 bytes of a management datagram into a message; what exists as a value has the
//! right versions, class, method and length. [`CmMad::emit`] writes the same bytes again, but for fields that the
//! specification reserves, which are read over and written as 0.

mod close;
mod fields;
mod ip_cm;
mod message;
mod path;
mod private_data;
mod refusals;
mod reject_reason;
mod rep;
mod req;
mod rtu;
mod service_id;
mod sidr;

pub use close::{Drep, Dreq};
pub use fields::gid;
pub use ip_cm::IpCmHeader;
pub use message::{CmKind, CmMad, CmMessage};
pub use path::CmPath;
pub use private_data::PrivateData;
pub use refusals::{Answered, Mra, Rej, RejectInfo};
pub use reject_reason::RejectReason;
pub use rep::Rep;
pub use req::{CmTransport, Req};
pub use rtu::Rtu;
pub use service_id::{PortSpace, ServiceId};
pub use sidr::{SidrRep, SidrReq, SidrStatus};
