"""Training on what execution has verified: the reward, the corpus, and the stages of training."""
