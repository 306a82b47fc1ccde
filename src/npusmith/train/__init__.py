"""Training on what execution has verified: the reward, the corpus, and the stages of training."""

from npusmith.train.reward import Details, Reward, Route, reward

__all__ = ["Details", "Reward", "Route", "reward"]
