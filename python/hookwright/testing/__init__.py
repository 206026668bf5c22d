"""What hookwright offers to the tests of its users."""
