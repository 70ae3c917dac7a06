#!/bin/sh
# Prints the home of a Java that Spark can use (17 or newer). Looks at JAVA_HOME, at PATH, and where
# systems keep their Javas; as root on Debian or Ubuntu, installs one if there is none.
set -eu

# The home of the Java that is started by "$1", or nothing if it is none or too old.
home_of() {
    command -v "$1" >/dev/null 2>&1 || return 0
    "$1" -XshowSettings:properties -version 2>&1 | awk -F ' = ' '
        $1 ~ /^ *java\.home$/ { home = $2 }
        $1 ~ /^ *java\.specification\.version$/ { version = $2 }
        END { if (version + 0 >= 17) print home }'
}

find_java() {
    # Of several in /usr/lib/jvm, 17 comes first: it is what we ask people to install.
    for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java \
        /usr/lib/jvm/*17*/bin/java /usr/lib/jvm/*21*/bin/java /usr/lib/jvm/*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
        home=$(home_of "$java")
        if [ -n "$home" ]; then
            echo "$home"
            return
        fi
    done
    return 1
}

install_java() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    echo "springhouse: installing a Java for Spark ..." >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update >/dev/null 2>&1 || true
    # Newer systems no longer have 17.
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        apt-get -qq install -y --no-install-recommends "$package" >/dev/null 2>&1 && return
    done
}

find_java || { install_java; find_java; } || {
    echo "springhouse: Spark needs Java 17 or newer, and found none; install one (for example openjdk-17-jre-headless) or set JAVA_HOME" >&2
    exit 1
}
