//! Why connections are rejected (protocol section 6.3; IBTA volume 1, 12.6.7.2).

use core::fmt;

/// Declares the reasons with their codes, and what they say.
macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $text:literal;)+) => {
        /// The reason of a REJ; the values of `ib_cm_rej_reason`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum RejectReason {
            $($(#[$doc])* $variant,)+
            /// A code that the specification does not define.
            Undefined(u16),
        }

        impl RejectReason {
            /// Every reason that the specification defines, in the order of the codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The code on the wire.
            #[must_use]
            pub const fn code(self) -> u16 {
                match self {
                    $(Self::$variant => $code,)+
                    Self::Undefined(code) => code,
                }
            }

            /// The reason of a code.
            #[must_use]
            pub const fn from_code(code: u16) -> Self {
                match code {
                    $($code => Self::$variant,)+
                    other => Self::Undefined(other),
                }
            }

            const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Undefined(_) => "a reason that the specification does not define",
                }
            }
        }
    };
}

reasons! {
    /// No queue pair is left.
    NoQp = 1, "the peer has no queue pair left";
    /// No end-to-end context is left.
    NoEec = 2, "the peer has no end-to-end context left";
    /// No resources are left.
    NoResources = 3, "the peer has no resources left";
    /// The peer waited for an answer in vain; the info is its CA GUID.
    Timeout = 4, "the peer waited for an answer in vain";
    /// The request is not supported.
    UnsupportedRequest = 5, "the peer does not support the request";
    /// A message named an identifier that is not in use.
    InvalidCommId = 6, "the peer does not know the connection";
    /// The identifiers of a message do not belong together.
    InvalidCommInstance = 7, "the identifiers do not belong to one connection";
    /// Nobody listens.
    InvalidServiceId = 8, "nobody listens to the service";
    /// The service is offered over another transport.
    InvalidTransportType = 9, "the service is offered over another transport";
    /// The peer believes an older connection of the same queue pair to exist.
    StaleConnection = 10, "the peer still holds an older connection of this queue pair: try again, or with another";
    /// The reliable datagram channel does not exist.
    NoRdc = 11, "the reliable datagram channel does not exist";
    /// The receiver's GID or P_Key is not the peer's; the info is the GID that is.
    InvalidGid = 12, "the address or the partition is not the peer's";
    /// The LID is not the peer's.
    InvalidLid = 13, "the LID is not the peer's";
    /// The service level is not supported.
    InvalidSl = 14, "the service level is not supported";
    /// The traffic class is not supported.
    InvalidTrafficClass = 15, "the traffic class is not supported";
    /// The hop limit is not supported.
    InvalidHopLimit = 16, "the hop limit is not supported";
    /// The packet rate is not supported.
    InvalidPacketRate = 17, "the packet rate is not supported";
    /// The alternate GID is not the peer's, or alternate paths do not exist.
    InvalidAltGid = 18, "the peer takes no such alternate path";
    /// The alternate LID is not the peer's.
    InvalidAltLid = 19, "the alternate LID is not the peer's";
    /// The alternate service level is not supported.
    InvalidAltSl = 20, "the alternate service level is not supported";
    /// The alternate traffic class is not supported.
    InvalidAltTrafficClass = 21, "the alternate traffic class is not supported";
    /// The alternate hop limit is not supported.
    InvalidAltHopLimit = 22, "the alternate hop limit is not supported";
    /// The alternate packet rate is not supported.
    InvalidAltPacketRate = 23, "the alternate packet rate is not supported";
    /// Ask another port, and another connection manager.
    PortCmRedirect = 24, "the peer names another port and connection manager";
    /// Ask another port.
    PortRedirect = 25, "the peer names another port";
    /// The path MTU is not supported; the info is the largest that is.
    InvalidMtu = 26, "the path MTU is not supported";
    /// The receiver cannot serve as many READ and atomic requests.
    InsufficientResponderResources = 27, "the peer cannot serve as many READ and atomic requests";
    /// The application said no.
    ConsumerDefined = 28, "the peer's application said no";
    /// The RNR retry count is not supported.
    InvalidRnrRetry = 29, "the RNR retry count is not supported";
    /// The sender uses the identifier for another connection.
    DuplicateLocalCommId = 30, "the identifier belongs to another connection";
    /// The class version is not supported.
    InvalidClassVersion = 31, "the class version is not supported";
    /// The flow label is not supported.
    InvalidFlowLabel = 32, "the flow label is not supported";
    /// The alternate flow label is not supported.
    InvalidAltFlowLabel = 33, "the alternate flow label is not supported";
    /// What the vendors' extensions ask for is not supported.
    VendorOptionNotSupported = 35, "the vendor's option is not supported";
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (reason {})", self.text(), self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for code in 0..=u16::MAX {
            assert_eq!(RejectReason::from_code(code).code(), code);
        }
        let codes: std::vec::Vec<_> = RejectReason::ALL.iter().map(|reason| reason.code()).collect();
        assert_eq!(codes, (1..=33).chain([35]).collect::<std::vec::Vec<_>>());
    }
}
