"""The only place where config becomes objects: compose settings, build from them, carry a study out."""
