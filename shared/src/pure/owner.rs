//! Which hook acts on a failed turn.
//!
//! Two hooks hear every StopFailure. The payload's `error` alone says whose it
//! is, so both come to the same answer without asking each other, whatever else
//! either of them can see.

/// A hook that acts on failed turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Accounts, logins and limits; the wake after a throttle included.
    WalledHeal,
    /// Everything else.
    WedgeHeal,
}

/// The owner of a failure, by the client's own name for it (`error` in the
/// StopFailure payload). A failure without a name is wedge-heal's.
pub fn owner(error: Option<&str>) -> Owner {
    match error {
        Some(
            "rate_limit"
            | "billing_error"
            | "oauth_org_not_allowed"
            | "authentication_failed"
            | "account_on_hold",
        ) => Owner::WalledHeal,
        _ => Owner::WedgeHeal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_the_client_has_one_owner() {
        // The enum of 2.1.332, as its own schema has it.
        let ours = [
            "verification_required",
            "overloaded",
            "invalid_request",
            "model_not_found",
            "server_error",
            "unknown",
            "max_output_tokens",
            "cloud_credential_error",
            "a_word_of_tomorrow",
        ];
        let walls = [
            "rate_limit",
            "billing_error",
            "oauth_org_not_allowed",
            "authentication_failed",
            "account_on_hold",
        ];
        for error in ours {
            assert_eq!(owner(Some(error)), Owner::WedgeHeal, "{error}");
        }
        for error in walls {
            assert_eq!(owner(Some(error)), Owner::WalledHeal, "{error}");
        }
        assert_eq!(owner(None), Owner::WedgeHeal);
    }
}
