#!/bin/sh
# What `docker run IMAGE …` runs. The ancestors' forms work as they are:
#
#   docker run IMAGE                              serves
#   docker run IMAGE --port 8080                  serves, with these flags
#   docker run IMAGE bootstrap -createKeyspace    any command of angelhair
#   docker run IMAGE sh                           any other program of the image, for a look around
#
# Settings come from the environment (-e CONTACT_POINTS=…) or from the one YAML file in /data/conf; angelhair reads both.
set -eu

case "${1-}" in
  '')
    # An empty word is what a script with an unset variable hands over.
    [ "$#" -eq 0 ] || shift
    set -- angelhair serve "$@"
    ;;
  -h | --help | --version) set -- angelhair "$@" ;;
  -*) set -- angelhair serve "$@" ;;
  angelhair | sh | bash | python | python3 | /*) ;;
  *) set -- angelhair "$@" ;;
esac

# exec: the signal of `docker stop` must reach the server itself.
exec "$@"
