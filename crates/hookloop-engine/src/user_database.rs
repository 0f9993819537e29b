//! The system's user database, as far as hookloop asks it: the name of the user.

/// The longest user database that is read.
const USERS_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The name that the system's user database has for this process's user; none if it has none.
pub fn user_name() -> Option<String> {
    use std::io::Read;
    let mut text = Vec::new();
    let file = std::fs::File::open("/etc/passwd").ok()?;
    file.take(USERS_BYTES_MAX).read_to_end(&mut text).ok()?;
    name_of_user(&String::from_utf8_lossy(&text), rustix::process::getuid().as_raw())
}

/// The name of a user id in lines of `name:password:uid:…`.
fn name_of_user(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty() && !name.starts_with('#'))?;
        let found: u32 = fields.nth(1)?.parse().ok()?;
        (found == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_database_names_the_user_of_an_id() {
        let users =
            "# users\nroot:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\nbroken\n";
        assert_eq!(name_of_user(users, 1000).as_deref(), Some("ada"));
        assert_eq!(name_of_user(users, 0).as_deref(), Some("root"));
        assert_eq!(name_of_user(users, 7), None);
    }
}
