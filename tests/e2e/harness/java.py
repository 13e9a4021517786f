"""How the tests start Java. A client's few requests are over before code that is optimised more, or collected by more threads, is of use."""
QUICK_JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
