#!/bin/sh
# Fetches jars with Maven, once, and prints them as Spark and Java want them.
#
#   sh scripts/jars.sh kafka     what read_kafka needs: a list for spark.jars
#   sh scripts/jars.sh s3        what a storage of s3:// needs: a list for spark.jars
#   sh scripts/jars.sh broker    a Kafka broker, for tests: a class path
#
# They are kept under $SPRINGHOUSE_JARS, by default .cache/springhouse/jars in the home folder.
set -eu
what=${1:?"usage: jars.sh kafka, s3 or broker"}
here=$(cd "$(dirname "$0")" && pwd)
pom=$here/jars/$what.xml
[ -f "$pom" ] || { echo "jars.sh: there is no \"$what\"" >&2; exit 2; }

# Named after the list's own sum: a changed list is fetched anew.
sum=$(cksum < "$pom" | cut -d ' ' -f 1)
folder=${SPRINGHOUSE_JARS:-${XDG_CACHE_HOME:-$HOME/.cache}/springhouse/jars}/$what-$sum

if [ ! -d "$folder" ]; then
    command -v mvn >/dev/null || { echo "jars.sh: needs Maven (mvn), and found none" >&2; exit 1; }
    part=$folder.$$
    mkdir -p "$part"
    # Maven leaves files beside the list that it is given.
    cp "$pom" "$part/pom.xml"
    if ! mvn -q -B -f "$part/pom.xml" dependency:copy-dependencies -DoutputDirectory="$part/jars" >"$part/log" 2>&1; then
        echo "jars.sh: the jars of \"$what\" can't be had: $(sed -n 's/^\[ERROR\] *//p' "$part/log" | head -n 1)" >&2
        rm -rf "$part"
        exit 1
    fi
    # Whole from the moment that it appears; who comes second has fetched the same.
    if [ -d "$folder" ]; then rm -rf "$part"; else mv "$part" "$folder"; fi
fi

case $what in
    kafka | s3) find "$folder/jars" -name '*.jar' | sort | paste -sd , - ;;
    broker) echo "$folder/jars/*" ;;
esac
