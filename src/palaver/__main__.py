"""`python -m palaver`, and with it `accelerate launch -m palaver train …`."""

from palaver.cli.main import run

if __name__ == "__main__":
    run()
